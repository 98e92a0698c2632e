import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigurationError } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { checkContract, type MakeStore, type PromiseVerdict } from '@tallystick/ledger/contract'
import type { Command } from '@commander-js/extra-typings'
import { parsePositiveNumber } from '../command/arguments.ts'
import { type CommandContext, printEither } from '../command/context.ts'
import { CommandError, exitCodes } from '../command/exit-code.ts'
import { formatCount } from '../command/text.ts'
import type { Paint } from '../terminal/paint.ts'
import type { Done } from '../verbs.ts'

/** Declares `contract`: a line for each promise of a ledger, and how many are kept. Exit code 1 if one is broken. */
export function declareContract(verb: Command, context: CommandContext, done: Done): void {
  verb
    .argument('<file>', 'module whose default export makes an empty store: () => ({ open, remove?, lacks? })')
    .option('--only <words>', 'only promises that contain these words')
    .option('--seconds <n>', 'how long a store may take for one promise (default: 30)', parsePositiveNumber)
    .option('--json', 'print JSON; errors too, on stderr')
    .action(async (module, { only, seconds }) => {
      const makeStore = await importStores(resolve(context.workingDirectory, module))
      const count: Record<PromiseVerdict['verdict'], number> = { kept: 0, broken: 0, skipped: 0 }
      const limitMs = seconds === undefined ? undefined : seconds * 1000
      for await (const verdict of checkContract(makeStore, omitUndefined({ only, limitMs }))) {
        count[verdict.verdict]++
        await printEither(context, verdict, `${formatVerdict(verdict, context.paint)}\n`)
      }
      const { kept, broken, skipped } = count
      const checked = kept + broken + skipped
      if (checked === 0) {
        throw new CommandError(
          'not_found',
          `No promise of a ledger contains ${JSON.stringify(only)}. Leave --only out to see them all.`,
        )
      }
      const text = `${formatCount(checked, 'promise')}: ${kept} kept, ${broken} broken, ${skipped} skipped\n`
      await printEither(context, { promises: checked, ...count }, text)
      done(broken === 0 ? exitCodes.ok : exitCodes.failed)
    })
}

function formatVerdict({ promise, verdict, why }: PromiseVerdict, paint: Paint): string {
  const colours = { kept: 'green', broken: 'red', skipped: 'yellow' } as const
  const mark = paint(colours[verdict], (verdict === 'broken' ? 'BROKEN' : verdict).padEnd(7))
  return why === undefined ? `${mark}  ${promise}` : `${mark}  ${promise}\n${' '.repeat(9)}${why}`
}

async function importStores(path: string): Promise<MakeStore> {
  if (!existsSync(path)) {
    throw new ConfigurationError(
      `There is no file ${path}, so there is no store to test. Name the module that makes one.`,
    )
  }
  let makeStore: unknown
  try {
    makeStore = ((await import(pathToFileURL(path).href)) as { readonly default?: unknown }).default
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new ConfigurationError(
      `${path} cannot be imported, so there is no store to test. Correct it: ${reason}`,
      {
        cause,
      },
    )
  }
  if (typeof makeStore === 'function') return makeStore as MakeStore
  throw new ConfigurationError(
    `${path} makes no stores. Let its default export be a function that returns { open, remove?, lacks? }: how to open ` +
      'a ledger over a store that is empty, how to remove it, and whether it is not "durable" or not "shared".',
  )
}
