import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigurationError } from '@tallystick/core'
import { checkContract, type MakeStore, type PromiseVerdict } from '@tallystick/ledger/contract'
import type { Command } from 'commander'
import { positiveNumber } from '../command/arguments.ts'
import type { CommandContext } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodes } from '../command/exit-code.ts'
import { counted } from '../command/text.ts'
import type { Paint } from '../terminal/paint.ts'
import type { Done } from '../verbs.ts'

/** What `contract` was given. */
export interface ContractVerbOptions {
  /** File of the module that makes the stores. */
  readonly module: string
  /** Promises whose text holds this. */
  readonly only?: string
  /** How long a store may take for one promise. */
  readonly seconds?: number
}

type Count = Record<PromiseVerdict['verdict'], number>

/** Declares what `contract` takes. */
export function declareContract(verb: Command, context: CommandContext, done: Done): void {
  verb
    .description('test whether a store of your own keeps the promises of a ledger')
    .argument('<file>', 'module whose default export makes an empty store: () => ({ open, remove?, lacks? })')
    .option('--only <words>', 'only promises that contain these words')
    .option('--seconds <n>', 'how long a store may take for one promise (default: 30)', positiveNumber)
    .option('--json', 'print JSON; errors too, on stderr')
    .action(async (module: string, options: Omit<ContractVerbOptions, 'module'>) => {
      done(await contract(context, { module, ...options }))
    })
}

/** `contract`: a line for each promise of a ledger, and how many are kept. Exit code 1 where one is broken. */
export async function contract(
  { json, paint, print, workingDirectory }: CommandContext,
  { module, only, seconds }: ContractVerbOptions,
): Promise<ExitCode> {
  const makeStore = await importStores(resolve(workingDirectory, module))
  const count: Count = { kept: 0, broken: 0, skipped: 0 }
  const options = {
    ...(only !== undefined && { only }),
    ...(seconds !== undefined && { limitMs: seconds * 1000 }),
  }
  for await (const verdict of checkContract(makeStore, options)) {
    count[verdict.verdict]++
    await print(`${json ? JSON.stringify(verdict) : verdictText(verdict, paint)}\n`)
  }
  const checked = count.kept + count.broken + count.skipped
  if (checked === 0) {
    throw new CommandError(
      'not_found',
      `No promise of a ledger contains ${JSON.stringify(only)}. Leave --only out to see them all.`,
    )
  }
  const { kept, broken, skipped } = count
  await print(
    json
      ? `${JSON.stringify({ promises: checked, ...count })}\n`
      : `${counted(checked, 'promise')}: ${kept} kept, ${broken} broken, ${skipped} skipped\n`,
  )
  return broken === 0 ? exitCodes.ok : exitCodes.failed
}

function verdictText({ promise, verdict, why }: PromiseVerdict, paint: Paint): string {
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
    `${path} makes no stores. Let its default export be a function that answers { open, remove?, lacks? }: how to open ` +
      'a ledger over a store that is empty, how to remove it, and whether it is not "durable" or not "shared".',
  )
}
