/* jobs.h: the documents that the checks of proto begin with. */
#ifndef TESTS_PROTO_JOBS_H
#define TESTS_PROTO_JOBS_H

/* The example of job.md. */
static const char jobs_digits[] =
    "{\n"
    "  \"version\": 1,\n"
    "  \"name\": \"digits-cnn\",\n"
    "  \"model\": {\n"
    "    \"input\": {\"shape\": [1, 8, 8]},\n"
    "    \"layers\": [\n"
    "      {\"type\": \"Conv2d\", \"name\": \"conv1\", \"out_channels\": 32, \"kernel_size\": 3,\n"
    "       \"padding\": 1},\n"
    "      {\"type\": \"BatchNorm2d\", \"name\": \"bn1\"},\n"
    "      {\"type\": \"ReLU\"},\n"
    "      {\"type\": \"MaxPool2d\", \"kernel_size\": 2},\n"
    "      {\"type\": \"Flatten\"},\n"
    "      {\"type\": \"Linear\", \"name\": \"fc\", \"out_features\": 10}\n"
    "    ]\n"
    "  },\n"
    "  \"data\": {\n"
    "    \"train\": {\"format\": \"idx\", \"inputs\": \"digits-train-images.gz\",\n"
    "              \"targets\": \"digits-train-labels.gz\"},\n"
    "    \"validation\": {\"format\": \"idx\", \"inputs\": \"digits-test-images.gz\",\n"
    "                   \"targets\": \"digits-test-labels.gz\"},\n"
    "    \"transform\": {\"scale\": 0.0625}\n"
    "  },\n"
    "  \"loss\": {\"type\": \"CrossEntropyLoss\"},\n"
    "  \"optimizer\": {\"type\": \"SGD\", \"lr\": 0.05, \"momentum\": 0.9},\n"
    "  \"train\": {\"epochs\": 5, \"batch_size\": 64, \"seed\": 1},\n"
    "  \"parallel\": {\"mode\": \"replicate\", \"devices\": 2},\n"
    "  \"output\": \"runs/digits-cnn\"\n"
    "}\n";

/* Every key of this version, none at its default. */
static const char jobs_full[] =
    "{\"version\": 1, \"name\": \"full\", \"model\": {"
    "\"input\": {\"shape\": [3, 16, 16], \"dtype\": \"int64\", \"lengths\": true}, \"layers\": ["
    "{\"type\": \"Conv2d\", \"name\": \"layer1.0.conv1\", \"inputs\": [\"input\"],"
    " \"out_channels\": 6, \"in_channels\": 3, \"kernel_size\": [3, 5], \"stride\": [1, 2],"
    " \"padding\": [0, 1], \"dilation\": 2, \"groups\": 3, \"bias\": false,"
    " \"weight_init\": {\"type\": \"kaiming_uniform\", \"a\": 2, \"mode\": \"fan_out\","
    " \"nonlinearity\": \"tanh\"}, \"bias_init\": {\"type\": \"normal\", \"mean\": 1, \"std\": 2}},"
    "{\"type\": \"BatchNorm2d\", \"num_features\": 6, \"eps\": 0.001, \"momentum\": 0.2,"
    " \"affine\": false, \"track_running_stats\": false},"
    "{\"type\": \"Add\", \"name\": \"sum\", \"inputs\": [\"1\", \"layer1.0.conv1\"]},"
    "{\"type\": \"MaxPool2d\", \"kernel_size\": [4, 3], \"stride\": 1, \"padding\": [2, 1],"
    " \"dilation\": [1, 2], \"ceil_mode\": true},"
    "{\"type\": \"AdaptiveAvgPool2d\", \"output_size\": [2, 3]},"
    "{\"type\": \"Flatten\", \"start_dim\": 1, \"end_dim\": 3},"
    "{\"type\": \"BatchNorm1d\"}, {\"type\": \"ReLU\"}, {\"type\": \"Dropout\", \"p\": 0.25},"
    "{\"type\": \"Linear\", \"in_features\": 36, \"out_features\": 4, \"bias\": false}],"
    "\"init\": {\"seed\": 0, \"weights\": \"w.safetensors\", \"strict\": false}},"
    "\"data\": {\"train\": {\"format\": \"random\", \"samples\": 100, \"seed\": 3},"
    "\"validation\": {\"format\": \"random\", \"samples\": 10, \"seed\": 4, \"classes\": 4},"
    "\"transform\": {\"scale\": [1, 2.5, 3], \"mean\": [0.1, -0.2, 0.3], \"std\": [1, 2, 3]},"
    "\"shuffle\": false, \"drop_last\": true},"
    "\"loss\": {\"type\": \"MSELoss\", \"reduction\": \"sum\"},"
    "\"optimizer\": {\"type\": \"SGD\", \"lr\": 1, \"momentum\": 0.5, \"nesterov\": true,"
    " \"weight_decay\": 1e-4},"
    "\"train\": {\"max_steps\": 1000, \"batch_size\": 30, \"seed\": 9223372036854775807,"
    " \"log_every\": 10, \"validate_every\": \"500 steps\", \"trace\": [\"shapes\"]},"
    "\"parallel\": {\"mode\": \"replicate\", \"devices\": [\"cpu:1\", \"cpu\", \"cpu:0\"],"
    " \"device_type\": \"cpu\"},"
    "\"checkpoint\": {\"every\": \"10 min\", \"keep\": 3, \"resume\": \"never\"},"
    "\"output\": \"/tmp/out\"}";

#endif
