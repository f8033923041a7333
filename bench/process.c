/* SPDX-License-Identifier: MIT */
/* See process.h. */
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu.h"

pid_t process_fork(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid > 0)
        cpu_watch(pid);
    if (pid != 0)
        return pid;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent || setpgid(0, 0) != 0)
        _exit(1);
    return 0;
}

void process_wait(pid_t pid)
{
    if (pid <= 0)
        return;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    cpu_forget(pid);
}

void process_kill(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGKILL);
    process_wait(pid);
}

bool process_ended(pid_t pid, int *status)
{
    if (waitpid(pid, status, WNOHANG) != pid)
        return false;
    cpu_forget(pid);
    return true;
}

void *process_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

void process_unshare(void *memory, size_t size)
{
    munmap(memory, size);
}
