# systemd: the unit of the system daemon and the groups that it looks for.
systemdunitdir = $(prefix)/lib/systemd/system
systemdunit_DATA = systemd/traind.service
sysusersdir = $(prefix)/lib/sysusers.d
EXTRA_DIST += systemd/traind.service.in systemd/traind.sysusers
CLEANFILES += systemd/traind.service

systemd/traind.service: $(srcdir)/systemd/traind.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && sed -e 's|@sbindir[@]|$(sbindir)|' -e 's|@docdir[@]|$(docdir)|' \
		$(srcdir)/systemd/traind.service.in > $@

install-data-local:
	$(MKDIR_P) $(DESTDIR)$(sysusersdir)
	$(INSTALL_DATA) $(srcdir)/systemd/traind.sysusers $(DESTDIR)$(sysusersdir)/traind.conf
uninstall-local:
	rm -f $(DESTDIR)$(sysusersdir)/traind.conf
