/* SPDX-License-Identifier: MIT
 *
 * The smallest complete program: waits up to five seconds for a lock, shows its fence, and gives it
 * back. Every failure arrives at the same line, with a name and a reason.
 */
#include <holdfast.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "redis://localhost";
    hf_client *client;
    hf_hold *hold;
    hf_error error;
    hf_status status = hf_open(url, NULL, &client, &error);
    if (status == HF_OK)
        status = hf_acquire(client, "order:42", HF_ACQUIRE(.wait_ms = 5000), &hold, &error);
    if (status == HF_OK) {
        printf("order:42 is ours, with the fence %llu\n", (unsigned long long)hf_fence(hold));
        status = hf_release(&hold, &error);
    }
    printf("%s: %s\n", hf_status_name(status), status == HF_OK ? "released" : error.text);
    hf_close(client);
    return status == HF_OK ? 0 : 1;
}
