import { mkdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { createReadStream } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  type Agent,
  ConfigurationError,
  type Ledger,
  LedgerDamagedError,
  memoryLedger,
  type RunId,
  RunNotFoundError,
  type RuntimeEvent,
  type RuntimeRules,
  withRuntimeRules,
} from '@tallystick/core'
import {
  omitUndefined,
  option,
  listReachableAgents,
  requireLedger,
  requireOptions,
} from '@tallystick/core/internal'
import { requireTextId } from '@tallystick/core/store-kit'
import type { EventType, ModelRef } from '@tallystick/core/vocabulary'
import { toExportLine, importEvents, splitLines } from '@tallystick/ledger'
import { replayDefinitions, type ReplayOptions, replayRun, requireContent } from './replay.ts'
import { redactAgent, redactEvents } from './redact-events.ts'
import { ownSecretPatterns, SecretMask } from './secrets.ts'
import { type Difference, selectDifferences } from './diff.ts'

/**
 * Characters that source code may hold unescaped: letters, marks, numbers, punctuation and symbols of any script, and
 * the space. Line ends, controls, direction marks and invisible characters are written as escapes, so that no text can
 * break out of its literal, and code reads as it runs.
 */
const asItIs = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u

/** A text as a string literal of JavaScript, in single quotes. */
export function toStringLiteral(text: string): string {
  return `'${escapeText(text).replaceAll("'", String.raw`\'`)}'`
}

/** A text for a line comment. */
export function toComment(text: string): string {
  return escapeText(text.replaceAll(/\s+/g, ' '))
}

/** A name that code imports. Throws a `ConfigurationError` if it is not an identifier of JavaScript. */
export function requireIdentifier(name: string): string {
  if (/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name)) return name
  throw new ConfigurationError(
    `${toStringLiteral(name)} cannot be imported by name, since it is not an identifier. Give the name of a named export, or ` +
      'none for the default export.',
  )
}

function escapeText(text: string): string {
  return Array.from(text, (character) => {
    if (character === '\\') return String.raw`\\`
    if (asItIs.test(character)) return character
    // A character may be of two units.
    return character
      .split('')
      .map((unit) => String.raw`\u` + unit.charCodeAt(0).toString(16).padStart(4, '0'))
      .join('')
  }).join('')
}

/** How to write a regression test. */
export interface RegressionOptions {
  /** The test file to write, such as `test/refund.spec.ts`. The export of the run goes beside it, as `refund.jsonl`. */
  readonly file: string
  /**
   * Where the test finds today's agents: the module to import, and the name of the export. Default: its default export.
   */
  readonly agents: { readonly from: string; readonly name?: string | undefined }
  /** Patterns of further secrets. If a pattern has a group, the match of the group is masked. */
  readonly secrets?: readonly RegExp[] | undefined
  /** As for `replayRun`: with `recorded`, changed instructions, tools and schemas do not fail the test. */
  readonly definitions?: ReplayOptions['definitions'] | undefined
}

const { fields, filledText, maybe, valueThat } = option
const regressionOptions = fields<RegressionOptions>({
  file: filledText,
  agents: fields<RegressionOptions['agents']>({ from: filledText, name: maybe(filledText) }),
  secrets: ownSecretPatterns,
  definitions: replayDefinitions,
})

/** A regression test that was written. */
export interface Regression {
  readonly runId: RunId
  readonly events: number
  /** Events in which something was masked. */
  readonly redacted: number
  /** The two files. */
  readonly test: string
  readonly fixture: string
}

/**
 * Writes a run as a small test file for vitest, with a fixture beside it: an export of the run. The test drives the run
 * again by today's code of its agents (`replayRegression`), offline, and fails at the first event that comes out
 * otherwise.
 *
 * Texts that look like secrets are masked by a text of the same length, everywhere: keys with the
 * prefix of a vendor, JSON web tokens, private keys, headers such as `Authorization` and `Cookie`, passwords in
 * URLs, and values under names such as `password` or `api_key`, in JSON as in texts, also where they were streamed in
 * pieces. Recorded digests are computed again afterwards. Secrets that no pattern matches stay: read the fixture before
 * you commit it. Two secrets of the same length become the same text.
 *
 * Ids that the runtime made, of runs and of calls, stay, whatever a pattern matches.
 *
 * Rejects with `RunNotFoundError` for an unknown run, with `ConfigurationError` if the file exists already or a pattern of
 * `secrets` masks so much that the rest is not a run, and with what `audit` throws if the run breaks a law. Nothing is
 * written then.
 */
export async function exportRegression(
  ledger: Ledger,
  runId: RunId,
  options: RegressionOptions,
): Promise<Regression> {
  requireLedger('exportRegression', ledger)
  requireTextId('exportRegression', runId)
  requireOptions('exportRegression', regressionOptions, options)
  const { file } = options
  const { test, fixture, fixtureName, events, redacted } = await formatRegression(ledger, runId, options)
  const fixtureFile = join(dirname(file), fixtureName)
  await writeNew(fixtureFile, fixture)
  await writeNew(file, test)
  return { runId, events, redacted, test: file, fixture: fixtureFile }
}

/** The texts of a regression test. */
export interface RegressionText extends Pick<Regression, 'runId' | 'events' | 'redacted'> {
  /** The test file, and the export that goes beside it under the name that the test expects. */
  readonly test: string
  readonly fixture: string
  readonly fixtureName: string
}

/** Returns the texts that `exportRegression` writes, and writes nothing. Rejects as it does, but for files. */
export async function formatRegression(
  ledger: Ledger,
  runId: RunId,
  options: RegressionOptions,
): Promise<RegressionText> {
  requireLedger('formatRegression', ledger)
  requireTextId('formatRegression', runId)
  requireOptions('formatRegression', regressionOptions, options)
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) events.push(event)
  const [first] = events
  if (first?.type !== 'run_started') throw new RunNotFoundError(runId)
  requireContent(events)
  const kept = redactEvents(events, new SecretMask(options.secrets))
  const redacted = kept.filter(
    (event, index) => toExportLine(event) !== toExportLine(events[index] as RuntimeEvent),
  ).length
  const fixtureName = nameFixture(options.file)
  return {
    ...{ runId, events: kept.length, redacted, fixtureName },
    fixture: kept.map((event) => `${toExportLine(event)}\n`).join(''),
    test: formatTest({ runId, agent: first.agent, events: kept.length, name: fixtureName }, options),
  }
}

function nameFixture(file: string): string {
  const [name = '', ending] = basename(file).split(/(?:\.(?:spec|test))?\.[cm]?[jt]s$/)
  if (name !== '' && ending !== undefined) return `${name}.jsonl`
  throw new ConfigurationError(
    `A regression test cannot be written to ${file}, which vitest would not run. Name a file such as refund.spec.ts.`,
  )
}

/**
 * Writes a new file, and creates missing folders. Rejects with a `ConfigurationError` if the file exists, since the
 * test may have been changed by hand.
 */
async function writeNew(file: string, text: string): Promise<void> {
  let hasFolder = false
  try {
    await mkdir(dirname(file), { recursive: true })
    hasFolder = true
    await writeFile(file, text, { flag: 'wx' })
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause)
    const what = hasFolder && code === 'EEXIST' ? 'is there already' : `cannot be written (${code})`
    throw new ConfigurationError(
      `The regression test was not written: ${file} ${what}. Name another file, or remove that one.`,
      { cause },
    )
  }
}

function formatTest(
  {
    runId,
    agent,
    events,
    name,
  }: { readonly runId: RunId; readonly agent: string; readonly events: number; readonly name: string },
  { agents: { from, name: exported }, secrets = [], definitions = 'today' }: RegressionOptions,
): string {
  const imported =
    exported === undefined || exported === 'agents' ? 'agents' : `${requireIdentifier(exported)} as agents`
  const own = [
    ...(secrets.length > 0 ? [`secrets: [${secrets.map(String).join(', ')}]`] : []),
    ...(definitions === 'recorded' ? [`definitions: 'recorded'`] : []),
  ]
  const more = own.length > 0 ? `, { ${own.join(', ')} }` : ''
  return `// A run of ${toComment(agent)} that took place, with its secrets masked. It is driven again by today's code of its
// agents, with the recorded replies and results: no model is called, and no tool runs.
import { replayRegression } from '@tallystick/replay'
import { expect, it } from 'vitest'
import ${exported === undefined ? imported : `{ ${imported} }`} from ${toStringLiteral(from)}

it(${toStringLiteral(`run ${runId} of ${agent.replaceAll(/\s+/g, ' ')} comes out as it was recorded`)}, async () => {
  const fixture = new URL(${toStringLiteral(encodeURIComponent(name))}, import.meta.url)
  expect(await replayRegression(fixture, agents${more})).toEqual({ runId: ${toStringLiteral(runId)}, events: ${events} })
})
`
}

/**
 * The argument of the function that sets up a regression test's agents. No model is asked and no tool runs, so the agents
 * need no real services.
 */
export interface RegressionContext {
  readonly verb: 'replay'
  /** The fixture's path. */
  readonly ledgerPath: string
  readonly runId: RunId
  /** The name that the run's agent was recorded under. */
  readonly agent: string
  readonly model: ModelRef
}

/** Agents, and a function to call when they are not needed any more. */
export interface RegressionSetup extends RuntimeRules {
  readonly agents: readonly Agent<unknown>[]
  /** The context of the run, as `replayRun` takes it. */
  readonly context?: unknown
  readonly close?: (() => void | Promise<void>) | undefined
}

/**
 * Today's agents: one, several, or a function that sets them up. The default export of a `tallystick.config.ts` is one
 * of these.
 */
export type RegressionAgents =
  | Agent<unknown>
  | readonly Agent<unknown>[]
  | RegressionSetup
  | ((context: RegressionContext) => RegressionSetup | Promise<RegressionSetup>)

/** Options of `replayRegression`. */
export interface ReplayRegressionOptions extends Pick<ReplayOptions, 'definitions'> {
  readonly secrets?: readonly RegExp[] | undefined
}

const replayOptions = fields<ReplayRegressionOptions>({
  secrets: ownSecretPatterns,
  definitions: replayDefinitions,
})
const fixturePlace = valueThat(
  'a URL or a path',
  (value) => value instanceof URL || (typeof value === 'string' && value !== ''),
)
const agentSource = valueThat(
  'an agent, a list of agents, a setup or a function that returns one',
  (value) => typeof value === 'function' || (typeof value === 'object' && value !== null),
)

/** The result of driving the run of a fixture again, short enough to read in a failed test. */
export interface RegressionReport {
  readonly runId: RunId
  /** Events that happened again as they were recorded, from the first on. */
  readonly events: number
  /** The first event that differs. */
  readonly divergence?: {
    readonly seq: number
    readonly turn: number
    /** Absent if the recording ends, or where nothing happened. */
    readonly recorded?: EventType
    readonly happened?: EventType
    /** As `selectDifferences` returns them. */
    readonly differences: readonly Difference[]
  }
}

/**
 * Drives the run of a fixture again by today's agents, as `replayRun` does, and reports the first event that differs.
 * The agents' texts are masked like the fixture, by the patterns `secrets` that it was written with. `definitions` is the
 * option of `replayRun`.
 *
 * Rejects with `LedgerDamagedError` if the fixture is not what was written, and with `ConfigurationError` where an
 * agent of the run is not among those of today, or an option is wrong.
 */
export async function replayRegression(
  fixture: URL | string,
  given: RegressionAgents,
  options: ReplayRegressionOptions = {},
): Promise<RegressionReport> {
  requireOptions('replayRegression', fixturePlace, fixture, 'the fixture')
  requireOptions('replayRegression', agentSource, given, 'the second argument')
  requireOptions('replayRegression', replayOptions, options)
  const { secrets, definitions = 'today' } = options
  const path = typeof fixture === 'string' ? fixture : fileURLToPath(fixture)
  const ledger = memoryLedger()
  const { runs, torn } = await importEvents(ledger, splitLines(createReadStream(path)))
  const record = await readFirst(ledger.runs())
  const start = record && (await readFirst(ledger.read(record.runId, { toSeq: 1 })))
  if (runs !== 1 || torn || start?.type !== 'run_started') {
    throw new LedgerDamagedError(
      `The fixture ${path} does not hold one whole run, so it cannot be driven again. Restore it, or write it again from the ledger.`,
    )
  }
  const { runId, agent, definition } = start
  const context = { verb: 'replay', ledgerPath: path, runId, agent, model: definition.model } as const
  const setUp = typeof given === 'function' ? await given(context) : given
  const setup: RegressionSetup = 'agents' in setUp ? setUp : { agents: 'name' in setUp ? [setUp] : setUp }
  const { agents, close, context: own, ...rules } = setup
  try {
    const mask = new SecretMask(secrets)
    const known = new Map(
      agents
        .flatMap(listReachableAgents)
        .map((each) => [each.name, redactAgent(withRuntimeRules(each, rules), mask)]),
    )
    const agentNamed = (name: string): Agent<unknown> => {
      const found = known.get(name)
      if (found) return found
      throw new ConfigurationError(
        `The run was recorded with an agent named ${name}, and no agent of today has that name, so it cannot be driven ` +
          'again. Add the agent, or remove the test.',
      )
    }
    const { events, divergence } = await replayRun(ledger, runId, agentNamed, { definitions, context: own })
    if (divergence === undefined) return { runId, events }
    const { seq, recorded, happened, differences } = divergence
    const { turn = 0 } = recorded ?? happened ?? {}
    const types = omitUndefined({ recorded: recorded?.type, happened: happened?.type })
    return {
      ...{ runId, events },
      divergence: { seq, turn, ...types, differences: selectDifferences(differences) },
    }
  } finally {
    await close?.()
  }
}

async function readFirst<T>(items: AsyncIterable<T>): Promise<T | undefined> {
  for await (const item of items) return item
  return undefined
}
