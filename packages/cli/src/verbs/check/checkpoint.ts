import { writeCheckpoint } from '@tallystick/ledger'
import type { CommandContext } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { exitCodes } from '../../command/exit-code.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import { readGiven } from '../../command/read-given.ts'
import { counted } from '../../view/text/run-ending.ts'
import type { Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'

/** What `checkpoint` was given. */
export interface CheckpointVerbOptions {
  readonly ledger: string
  /** Where the checkpoints are kept. */
  readonly out: string
  /** File of the key that signs. */
  readonly key: string
  readonly origin: string
}

/** Declares what `checkpoint` takes. */
export function declareCheckpoint(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'sign where every run ends now, so that verify detects a rewritten history')
    .requiredOption('--out <file>', 'the file that the checkpoint is appended to')
    .requiredOption('--key <file>', 'private Ed25519 key, as PEM')
    .requiredOption(
      '--origin <name>',
      'name of the ledger for those who verify it, such as example.com/agents',
    )
    .action(async (ledger: string, options: { out: string; key: string; origin: string }) => {
      done(await checkpoint(context, { ledger, ...options }))
    })
}

/** `checkpoint`: signs where every run ends now. Prints the signed note; keep it in a place that cannot be changed. */
export function checkpoint(
  { json, print, say }: CommandContext,
  { ledger: ledgerPath, out, key, origin }: CheckpointVerbOptions,
): Promise<ExitCode> {
  const signer = { file: out, key: readGiven(key), origin }
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const made = await writeCheckpoint(ledger, signer)
    if (json) await print(`${JSON.stringify(made)}\n`)
    else {
      const news =
        made.added === 0
          ? 'Nothing has changed since the last checkpoint'
          : `Signed ${counted(made.added, 'head')} more`
      say(
        `${news}; ${out} covers ${counted(made.size, 'head')}. Keep a copy of this where no writer of the ledger can change it:`,
      )
      await print(made.note)
    }
    return exitCodes.ok
  })
}
