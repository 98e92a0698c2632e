import { existsSync } from 'node:fs'
import { sqliteKeyring } from '@tallystick/ledger/sqlite'
import type { CommandContext } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { CommandError, exitCodes } from '../../command/exit-code.ts'
import { counted } from '../../view/text/run-ending.ts'
import type { Command } from 'commander'
import type { Done } from '../../verbs.ts'

/** What `erase` was given. */
export interface EraseOptions {
  /** File of the keyring. */
  readonly keys: string
  readonly subject: string
}

/** Declares what `erase` takes. */
export function declareErase(verb: Command, context: CommandContext, done: Done): void {
  verb
    .description(
      'destroy the keys of a subject, so that the content of its runs is unreadable in every copy of a ledger',
    )
    .argument('<keys>', 'file of the keyring')
    .argument('<subject>', 'the subject, as its runs name it')
    .option('--json', 'print JSON; errors too, on stderr')
    .action(async (keys: string, subject: string) => {
      done(await erase(context, { keys, subject }))
    })
}

/** `erase`: destroys the keys of a subject. What was sealed with them is gone, in ledgers and in their backups. */
export async function erase(
  { json, print, say }: CommandContext,
  { keys: path, subject }: EraseOptions,
): Promise<ExitCode> {
  if (!existsSync(path)) throw new CommandError('not_found', `There is no keyring at ${path}. Name its file.`)
  const keyring = sqliteKeyring(path)
  try {
    const destroyed = await keyring.destroy(subject)
    if (json) await print(`${JSON.stringify({ subject, destroyed })}\n`)
    else if (destroyed.length > 0) {
      say(
        `Destroyed ${counted(destroyed.length, 'key')} of ${subject}. Copies of ${path} are yours to destroy.`,
      )
    }
    if (destroyed.length > 0) return exitCodes.ok
  } finally {
    keyring.close()
  }
  throw new CommandError(
    'not_found',
    `The keyring has no key of ${subject}: nothing was sealed for it, or it was erased. Look at how the subject is spelled.`,
  )
}
