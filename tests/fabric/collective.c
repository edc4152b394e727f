/* Collectives over MPI that print nccl-tests' table: real traffic, no GPU. The program's name says which one. Arguments:
 * least and largest size in KiB, rounds, and --fault exit|hang|wrong|kill with the rank that has it. Size is that of
 * the whole buffer, as nccl-tests counts it; the mean of the rounds counts as there, but for the slowest, because these
 * hosts share a busy machine. Of the best one round without a loss would hide a lossy host. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALLTOALL };

static enum kind kind_of(const char *program) {
    const char *name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
    if (!strncmp(name, "all_gather", 10)) return ALL_GATHER;
    if (!strncmp(name, "reduce_scatter", 14)) return REDUCE_SCATTER;
    return !strncmp(name, "alltoall", 8) ? ALLTOALL : ALL_REDUCE;
}

static void once(enum kind kind, float *in, float *out, int each, int ranks) {
    if (kind == ALL_REDUCE) MPI_Allreduce(in, out, each * ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (kind == ALL_GATHER) MPI_Allgather(in, each, MPI_FLOAT, out, each, MPI_FLOAT, MPI_COMM_WORLD);
    if (kind == REDUCE_SCATTER) MPI_Reduce_scatter_block(in, out, each, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (kind == ALLTOALL) MPI_Alltoall(in, each, MPI_FLOAT, out, each, MPI_FLOAT, MPI_COMM_WORLD);
}

/* What out[at] must be, where in[at] is rank + at % 7 on every rank. */
static float wanted(enum kind kind, int at, int each, int ranks, int rank) {
    int sum = ranks * (ranks - 1) / 2;
    if (kind == ALL_REDUCE) return ranks * (at % 7) + sum;
    if (kind == ALL_GATHER) return at / each + at % each % 7;
    if (kind == REDUCE_SCATTER) return ranks * ((rank * each + at) % 7) + sum;
    return at / each + (rank * each + at % each) % 7;
}

static double timed(enum kind kind, float *in, float *out, int each, int ranks, int rounds) {
    double sum = 0, worst = 0;
    once(kind, in, out, each, ranks);
    for (int at = 0; at < rounds; at++) {
        double mine, slowest;
        MPI_Barrier(MPI_COMM_WORLD);
        mine = MPI_Wtime();
        once(kind, in, out, each, ranks);
        mine = MPI_Wtime() - mine;
        MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        sum += slowest;
        if (slowest > worst) worst = slowest;
    }
    return rounds > 2 ? (sum - worst) / (rounds - 1) : sum / rounds;
}

int main(int argc, char **argv) {
    int rank, ranks, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    setpriority(PRIO_PROCESS, 0, -15); /* before whatever else this machine does: the network is to be measured */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_processor_name(host, &length);
    long least = argc > 1 ? atol(argv[1]) << 10 : 1 << 20, most = argc > 2 ? atol(argv[2]) << 10 : 4 << 20;
    int rounds = argc > 3 ? atoi(argv[3]) : 2;
    enum kind kind = kind_of(argv[0]);
    const char *fault = argc > 6 && rank == atoi(argv[6]) ? argv[5] : "";
    if (rank == 0)
        printf("# nThread 1 nGpus 1 minBytes %ld maxBytes %ld step: 2(factor) warmup iters: 1 iters: %d agg iters: 1 "
               "validation: 1 graph: 0\n#\n# Using devices\n", least, most, rounds);
    for (int at = 0; at < ranks; at++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (at == rank) {
            printf("#  Rank %2d Group  0 Pid %6d on %10s device  0 [0x00] none\n", rank, getpid(), host);
            fflush(stdout);
        }
        usleep(2000);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("#\n#                                                              out-of-place                       in-place\n"
               "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n");
    if (!strcmp(fault, "exit")) exit(7);
    if (!strcmp(fault, "kill")) raise(SIGKILL);
    if (!strcmp(fault, "hang")) pause();
    double sum = 0;
    int rows = 0;
    long all_wrong = 0;
    for (long size = least; size <= most; size *= 2, rows++) {
        int each = size / sizeof(float) / ranks, count = each * ranks, own = kind == REDUCE_SCATTER ? each : count;
        float *in = malloc(size), *out = malloc(size);
        for (int at = 0; at < count; at++) in[at] = rank + at % 7;
        double seconds = timed(kind, in, out, each, ranks, rounds);
        long wrong = 0, total;
        for (int at = 0; at < own; at++)
            if (out[at] != wanted(kind, at, each, ranks, rank)) wrong++;
        if (!strcmp(fault, "wrong")) wrong = 3;
        MPI_Allreduce(&wrong, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        double algbw = size / seconds / 1e9, busbw = algbw * (kind == ALL_REDUCE ? 2 : 1) * (ranks - 1) / ranks;
        sum += busbw;
        all_wrong += total;
        if (rank == 0) {
            printf("%12ld  %12d     float     sum      -1  %7.1f  %8.6f  %8.6f  %5ld  %7.1f  %8.6f  %8.6f  %5ld\n", size, count,
                   seconds * 1e6, algbw, busbw, total, seconds * 1e6, algbw, busbw, total);
            fflush(stdout);
        }
        free(in);
        free(out);
    }
    if (rank == 0)
        printf("# Out of bounds values : %ld %s\n# Avg bus bandwidth    : %g\n#\n", all_wrong, all_wrong ? "FAILED" : "OK", sum / rows);
    MPI_Finalize();
    return 0;
}
