/* SPDX-License-Identifier: MIT */
/* What somebody else does to a lock: poke URL revoke NAME WHY | break NAME | look NAME. `look`
 * prints hold count, queue length and the label of the first holder. Exits with the hf_status. */
#include <holdfast.h>
#include <stdio.h>
#include <string.h>

static hf_status look(hf_client *client, const char *name, hf_error *error)
{
    static hf_inspection seen;
    hf_status status = hf_inspect(client, name, 0, &seen, error);
    if (status == HF_OK)
        printf("%llu %llu %s\n", (unsigned long long)seen.hold_count,
               (unsigned long long)seen.queue_length,
               seen.holder_count > 0 ? seen.holders[0].label : "");
    return status;
}

static hf_status poke(hf_client *client, char **words, hf_error *error)
{
    if (strcmp(words[0], "revoke") == 0)
        return hf_revoke(client, words[1], 0, words[2], error);
    if (strcmp(words[0], "break") == 0)
        return hf_break(client, words[1], 0, NULL, error);
    return look(client, words[1], error);
}

int main(int count, char **words)
{
    hf_client *client;
    hf_error error;
    if (count < 4 || hf_open(words[1], NULL, &client, &error) != HF_OK)
        return 64;
    hf_status status = poke(client, words + 2, &error);
    if (status != HF_OK)
        fprintf(stderr, "%s\n", error.text);
    hf_close(client);
    return (int)status;
}
