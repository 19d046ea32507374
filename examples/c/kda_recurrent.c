/* Kimi Delta Attention, token by token, as a program that needs no library: C99 and its math.
 *
 *   cc -std=c99 -O2 -o kda_recurrent kda_recurrent.c -lm
 *   ./kda_recurrent INPUTS OUTPUTS
 *
 * INPUTS is a folder as `k3check vectors export --raw` writes it, and as a command gets it: a file
 * NAME.bin for each tensor, little-endian and without a header, and index.txt with a line for each:
 *
 *   q float32 4 1 17 2 16          name, type, number of dimensions, dimensions
 *
 * The program writes output.bin [B, T, HV, V] and final_state.bin [N, HV, K, V] in float32.
 *
 *   k3check ops --operator-command kda_recurrent="./kda_recurrent {inputs} {outputs}"
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, DIMS = 8 };

typedef struct {
    char name[64], type[32];
    int dims;
    long shape[DIMS];
    long count;
    float *f;   /* values of float32 tensors, and of float64 scalars */
    int64_t *i; /* values of int32 and int64 tensors */
} Tensor;

static Tensor tensors[MOST];
static int known;

static void fail(const char *what, const char *which) {
    fprintf(stderr, "kda_recurrent: %s: %s\n", what, which);
    exit(1);
}

static void *room(long count, size_t size) {
    void *p = calloc(count > 0 ? (size_t)count : 1, size);
    if (p == NULL) fail("out of memory", "");
    return p;
}

/* Read the elements of one tensor, whatever their type, into f or i. */
static void read_values(const char *folder, Tensor *x) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.bin", folder, x->name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail("cannot open", path);
    int wide = strcmp(x->type, "float64") == 0 || strcmp(x->type, "int64") == 0;
    size_t size = wide ? 8 : 4, count = (size_t)x->count;
    void *raw = room(x->count, size);
    if (fread(raw, size, count, file) != count) fail("too short", path);
    fclose(file);
    x->f = room(x->count, sizeof *x->f);
    x->i = room(x->count, sizeof *x->i);
    for (long n = 0; n < x->count; n++) {
        if (strcmp(x->type, "float32") == 0) x->f[n] = ((float *)raw)[n];
        else if (strcmp(x->type, "float64") == 0) x->f[n] = (float)((double *)raw)[n];
        else if (strcmp(x->type, "int32") == 0) x->i[n] = ((int32_t *)raw)[n];
        else if (strcmp(x->type, "int64") == 0) x->i[n] = ((int64_t *)raw)[n];
        else fail("a type that this program does not read", x->type);
    }
    free(raw);
}

static void read_inputs(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/index.txt", folder);
    FILE *index = fopen(path, "r");
    if (index == NULL) fail("cannot open", path);
    while (known < MOST) {
        Tensor *x = &tensors[known];
        if (fscanf(index, "%63s %31s %d", x->name, x->type, &x->dims) != 3) break;
        if (x->dims < 0 || x->dims > DIMS) fail("too many dimensions", x->name);
        x->count = 1;
        for (int d = 0; d < x->dims; d++) {
            if (fscanf(index, "%ld", &x->shape[d]) != 1) fail("a damaged line", path);
            x->count *= x->shape[d];
        }
        read_values(folder, x);
        known++;
    }
    fclose(index);
}

/* A tensor by its name, NULL if the case does not have it. */
static const Tensor *find(const char *name) {
    for (int n = 0; n < known; n++)
        if (strcmp(tensors[n].name, name) == 0) return &tensors[n];
    return NULL;
}

static const Tensor *need(const char *name) {
    const Tensor *x = find(name);
    if (x == NULL) fail("missing input", name);
    return x;
}

static void write_values(const char *folder, const char *name, const float *values, long count) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.bin", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL) fail("cannot write", path);
    if (fwrite(values, sizeof *values, (size_t)count, file) != (size_t)count)
        fail("cannot write", path);
    if (fclose(file) != 0) fail("cannot write", path);
}

static double sigmoid(double x) {
    if (x >= 0) return 1.0 / (1.0 + exp(-x));
    double e = exp(x);
    return e / (1.0 + e);
}

static double softplus(double x) { return x > 30 ? x : log1p(exp(x)); }

/* x / sqrt(|x|^2 + 1e-6) */
static void normalise(const float *x, long K, double *out) {
    double sum = 1e-6;
    for (long c = 0; c < K; c++) sum += (double)x[c] * x[c];
    for (long c = 0; c < K; c++) out[c] = x[c] / sqrt(sum);
}

int main(int argc, char **argv) {
    if (argc != 3) fail("usage", "kda_recurrent INPUTS OUTPUTS");
    read_inputs(argv[1]);

    const Tensor *q = need("q"), *k = need("k"), *v = need("v");
    const Tensor *gate = need("gate"), *beta = need("beta");
    const Tensor *A_log = find("A_log"), *dt_bias = find("dt_bias"), *scale = find("scale");
    const Tensor *lower_bound = find("lower_bound"), *initial = find("initial_state");
    const Tensor *cu_seqlens = find("cu_seqlens");

    long B = k->shape[0], T = k->shape[1], H = k->shape[2], K = k->shape[3];
    long HV = v->shape[2], V = v->shape[3];
    long N = cu_seqlens != NULL ? cu_seqlens->shape[0] - 1 : B;
    double factor = scale != NULL ? scale->f[0] : 1.0 / sqrt((double)K);

    float *output = room(B * T * HV * V, sizeof *output);
    float *state = room(N * HV * K * V, sizeof *state);
    double *S = room(K * V, sizeof *S), *nq = room(K, sizeof *nq), *nk = room(K, sizeof *nk);

    for (long n = 0; n < N; n++) {
        /* A packed sequence is a part of the one row; otherwise every row is a sequence. */
        long b = cu_seqlens != NULL ? 0 : n;
        long from = cu_seqlens != NULL ? (long)cu_seqlens->i[n] : 0;
        long to = cu_seqlens != NULL ? (long)cu_seqlens->i[n + 1] : T;
        for (long h = 0; h < HV; h++) {
            long hk = h / (HV / H); /* value heads of one group read one query head */
            float *kept = state + (n * HV + h) * K * V;
            for (long e = 0; e < K * V; e++)
                S[e] = initial != NULL ? initial->f[(n * HV + h) * K * V + e] : 0.0;
            for (long t = from; t < to; t++) {
                normalise(q->f + ((b * T + t) * H + hk) * K, K, nq);
                normalise(k->f + ((b * T + t) * H + hk) * K, K, nk);
                const float *vt = v->f + ((b * T + t) * HV + h) * V;
                const float *gt = gate->f + ((b * T + t) * HV + h) * K;
                double bt = sigmoid(beta->f[(b * T + t) * HV + h]);
                double rate = A_log != NULL ? exp((double)A_log->f[h]) : 1.0;

                /* 1. Decay: row c of the state by exp(g_c). */
                for (long c = 0; c < K; c++) {
                    double x = gt[c] + (dt_bias != NULL ? dt_bias->f[h * K + c] : 0.0);
                    double g = lower_bound != NULL ? lower_bound->f[0] * sigmoid(rate * x)
                                                   : -rate * softplus(x);
                    for (long j = 0; j < V; j++) S[c * V + j] *= exp(g);
                }
                for (long j = 0; j < V; j++) {
                    /* 2. What the state has for this key, and how far that is from the value. */
                    double predicted = 0, read = 0;
                    for (long c = 0; c < K; c++) predicted += nk[c] * S[c * V + j];
                    double error = bt * (vt[j] - predicted);
                    /* 3. Write, then read the new state with the query. */
                    for (long c = 0; c < K; c++) {
                        S[c * V + j] += nk[c] * error;
                        read += nq[c] * S[c * V + j];
                    }
                    output[((b * T + t) * HV + h) * V + j] = (float)(factor * read);
                }
            }
            for (long e = 0; e < K * V; e++) kept[e] = (float)S[e];
        }
    }
    write_values(argv[2], "output", output, B * T * HV * V);
    write_values(argv[2], "final_state", state, N * HV * K * V);
    return 0;
}
