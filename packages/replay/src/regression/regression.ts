import { mkdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import {
  ConfigurationError,
  RunNotFoundError,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/kit'
import { requireTextId } from '@tallystick/core/store-kit'
import { exportedLine } from '@tallystick/ledger'
import { requireContent } from '../replay/required-content.ts'
import { redactedEvents } from './redacted-events.ts'
import { replayDefinitions, type ReplayOptions } from '../replay/replay.ts'
import { ownSecretPatterns, SecretMask } from './secret-mask.ts'
import { commentText, identifier, stringLiteral } from './source-text.ts'

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

const { fields, filledText, maybe } = option
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
 * What looks like a secret is masked by a text of the same length in everything that was said: keys with the
 * prefix of a vendor, JSON web tokens, private keys, headers such as `Authorization` and `Cookie`, passwords in
 * URLs, and values under names such as `password` or `api_key`, in JSON as in texts, also where they were streamed in
 * pieces. Digests on record are computed anew over what is left. What a pattern cannot know stays: look at the fixture
 * before it is committed. Two secrets of one length become the same text.
 *
 * Ids that the runtime made, of runs and of calls, stay, whatever a pattern matches.
 *
 * Rejects with `RunNotFoundError` for an unknown run, with `ConfigurationError` if the file exists already or a pattern of
 * `secrets` masks so much that the rest is no run, and with what `audit` throws where the run breaks a law. Nothing is
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
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) events.push(event)
  const [first] = events
  if (first?.type !== 'run_started') throw new RunNotFoundError(runId)
  requireContent(events)
  const kept = redactedEvents(events, new SecretMask(options.secrets))
  const redacted = kept.filter(
    (event, index) => exportedLine(event) !== exportedLine(events[index] as RuntimeEvent),
  ).length
  const { file } = options
  const name = fixtureName(file)
  const fixture = join(dirname(file), name)
  await writeNew(fixture, kept.map((event) => `${exportedLine(event)}\n`).join(''))
  await writeNew(file, testText({ runId, agent: first.agent, events: kept.length, name }, options))
  return { runId, events: kept.length, redacted, test: file, fixture }
}

function fixtureName(file: string): string {
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
  const refuse = (what: string, cause: unknown): never => {
    throw new ConfigurationError(
      `The regression test was not written: ${file} ${what}. Name another file, or remove that one.`,
      { cause },
    )
  }
  const codeOf = (cause: unknown): string => (cause as NodeJS.ErrnoException).code ?? String(cause)
  await mkdir(dirname(file), { recursive: true }).catch((cause: unknown) =>
    refuse(`cannot be written (${codeOf(cause)})`, cause),
  )
  await writeFile(file, text, { flag: 'wx' }).catch((cause: unknown) => {
    const code = codeOf(cause)
    return refuse(code === 'EEXIST' ? 'is there already' : `cannot be written (${code})`, cause)
  })
}

interface Written {
  readonly runId: RunId
  readonly agent: string
  readonly events: number
  readonly name: string
}

function testText(
  { runId, agent, events, name }: Written,
  { agents: { from, name: exported }, secrets = [], definitions = 'today' }: RegressionOptions,
): string {
  const imported =
    exported === undefined || exported === 'agents' ? 'agents' : `${identifier(exported)} as agents`
  const own = [
    ...(secrets.length > 0 ? [`secrets: [${secrets.map(String).join(', ')}]`] : []),
    ...(definitions === 'recorded' ? [`definitions: 'recorded'`] : []),
  ]
  const more = own.length > 0 ? `, { ${own.join(', ')} }` : ''
  return `// A run of ${commentText(agent)} that took place, with its secrets masked. It is driven again by today's code of its
// agents, with the recorded replies and results: no model is called, and no tool runs.
import { replayRegression } from '@tallystick/replay'
import { expect, it } from 'vitest'
import ${exported === undefined ? imported : `{ ${imported} }`} from ${stringLiteral(from)}

it(${stringLiteral(`run ${runId} of ${agent.replaceAll(/\s+/g, ' ')} comes out as it was recorded`)}, async () => {
  const fixture = new URL(${stringLiteral(encodeURIComponent(name))}, import.meta.url)
  expect(await replayRegression(fixture, agents${more})).toEqual({ runId: ${stringLiteral(runId)}, events: ${events} })
})
`
}
