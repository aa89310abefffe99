/* dump.c: a graph as text:
 *
 *     F fc linear(data, fc.weight, fc.bias) -> %4 [2, 3]
 *
 * is the forward node of layer fc; «-» stands for what is absent; behind a shape stands the type,
 * where it is BF16. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/graph/graph.h"
#include "engine/graph/op.h"

static const char phase_letters[] = {
    [PHASE_FORWARD] = 'F',     [PHASE_RECOMPUTE] = 'C', [PHASE_INPUT_GRAD] = 'I',
    [PHASE_WEIGHT_GRAD] = 'W', [PHASE_REDUCE] = 'R',    [PHASE_UPDATE] = 'U'};

static void print_value(FILE *out, const struct value *value)
{
    if (value == NULL)
        fputs("-", out);
    else if (value->name != NULL)
        fputs(value->name, out);
    else
        fprintf(out, "%%%d", value->id);
}

static void print_node(FILE *out, const struct node *node)
{
    char text[SHAPE_TEXT];
    fprintf(out, "%c %s %s(", phase_letters[node->phase], node->name, node->op->name);
    for (int i = 0; i < node->n_in; i++) {
        fputs(i == 0 ? "" : ", ", out);
        print_value(out, node->in[i]);
    }
    fputs(")", out);
    for (int i = 0; i < node->n_out; i++) {
        fputs(i == 0 ? " -> " : ", ", out);
        print_value(out, node->out[i]);
        if (node->out[i] != NULL && node->out[i]->kind == VALUE_ACTIVATION)
            fprintf(out, " %s%s", shape_format(&node->out[i]->shape, text),
                    node->out[i]->dtype == DTYPE_BF16 ? " BF16" : "");
    }
    fputs("\n", out);
}

char *graph_dump(const struct graph *graph)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < graph->n_nodes; i++)
        print_node(out, graph->nodes[i]);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
