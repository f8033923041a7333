/* SPDX-License-Identifier: MIT */
#include <holdfast.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    hf_client *client = NULL;
    hf_hold *hold = NULL;
    hf_error error = {HF_EINVAL, "which server?"};
    if (argc == 2 && hf_open(argv[1], NULL, &client, &error) == HF_OK &&
        hf_acquire(client, "package", HF_ACQUIRE(.wait_ms = 5000), &hold, &error) == HF_OK) {
        printf("fence %llu\n", (unsigned long long)hf_fence(hold));
        hf_release(&hold, &error);
    }
    hf_close(client);
    printf("%s %s\n", hf_status_name(error.status), error.text);
    return error.status == HF_OK ? 0 : 1;
}
