import { createReadStream } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  ConfigurationError,
  LedgerDamagedError,
  memoryLedger,
  type Agent,
  type RunId,
} from '@tallystick/core'
import {
  option,
  omitUndefined,
  reachableAgents,
  requireOptions,
  withRuntimeRules,
  type RuntimeRules,
} from '@tallystick/core/kit'
import { type EventType, type ModelRef } from '@tallystick/core/vocabulary'
import { reportedDifferences, type Difference } from '../diff/difference.ts'
import { importEvents } from '@tallystick/ledger'
import { linesOf } from '@tallystick/ledger'
import { redactedAgent } from './redacted-definition.ts'
import { replayDefinitions, replayRun, type ReplayOptions, type ReplayReport } from '../replay/replay.ts'
import { ownSecretPatterns, SecretMask } from './secret-mask.ts'

/**
 * What a regression test passes to the setup of its agents: nothing is driven for real, so the agents need no real
 * services.
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
  /** What the application gives the run, as `replayRun` takes it. */
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

const { fields, valueThat } = option
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
    /** Absent where the recording ends, or where nothing happened. */
    readonly recorded?: EventType
    readonly happened?: EventType
    /** As `reportedDifferences` returns them. */
    readonly differences: readonly Difference[]
  }
}

/**
 * Drives the run of a fixture again by today's agents, as `replayRun` does, and reports the first event that differs.
 * What the agents say is masked as the fixture is; `secrets` are the patterns that it was written with. `definitions` is
 * what `replayRun` takes.
 *
 * Rejects with `LedgerDamagedError` where the fixture is not what was written, and with `ConfigurationError` where an
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
  const { runs, torn } = await importEvents(ledger, linesOf(createReadStream(path)))
  const record = await firstOf(ledger.runs())
  const start = record && (await firstOf(ledger.read(record.runId, { toSeq: 1 })))
  if (runs !== 1 || torn || start?.type !== 'run_started') {
    throw new LedgerDamagedError(
      `The fixture ${path} does not hold one whole run, so it cannot be driven again. Restore it, or write it again from the ledger.`,
    )
  }
  const { runId, agent, definition } = start
  const context = { verb: 'replay', ledgerPath: path, runId, agent, model: definition.model } as const
  const { agents, close, context: own, ...rules } = await setUp(given, context)
  try {
    const mask = new SecretMask(secrets)
    const known = new Map(
      agents
        .flatMap(reachableAgents)
        .map((each) => [each.name, redactedAgent(withRuntimeRules(each, rules), mask)]),
    )
    const agentNamed = (name: string): Agent<unknown> => known.get(name) ?? unknownAgent(name)
    return reportOf(await replayRun(ledger, runId, agentNamed, { definitions, context: own }))
  } finally {
    await close?.()
  }
}

function reportOf({ runId, events, divergence }: ReplayReport): RegressionReport {
  if (divergence === undefined) return { runId, events }
  const { seq, recorded, happened, differences } = divergence
  const { turn = 0 } = recorded ?? happened ?? {}
  const types = omitUndefined({ recorded: recorded?.type, happened: happened?.type })
  return { runId, events, divergence: { seq, turn, ...types, differences: reportedDifferences(differences) } }
}

async function firstOf<T>(items: AsyncIterable<T>): Promise<T | undefined> {
  for await (const item of items) return item
  return undefined
}

async function setUp(given: RegressionAgents, context: RegressionContext): Promise<RegressionSetup> {
  if (typeof given === 'function') return await given(context)
  if ('agents' in given) return given
  return { agents: 'name' in given ? [given] : given }
}

function unknownAgent(name: string): never {
  throw new ConfigurationError(
    `The run was recorded with an agent named ${name}, and today's agents have none of that name, so it cannot be driven ` +
      'again. Add the agent, or remove the test.',
  )
}
