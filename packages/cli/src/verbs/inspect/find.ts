import { omitUndefined } from '@tallystick/core/kit'
import { canonicalJson, outcomes, type Outcome } from '@tallystick/core/vocabulary'
import { inputQuery, type InputQuery } from '../../runs/call-query.ts'
import type { CommandContext } from '../../command/command-context.ts'
import { commandLine } from '../../command/command-context.ts'
import { CommandError, exitCodes, type ExitCode } from '../../command/exit-code.ts'
import { findRun } from '../../lookup/find-run.ts'
import { foundEvents, type EventFinder, type Found } from '../../runs/found-events.ts'
import { filledText, moment, momentAt, type GivenMoment, wholeNumber } from '../../command/parse-args.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import { oneLine } from '../../view/text/content-text.ts'
import { textWidth } from '../../terminal/text-width.ts'
import { timeText } from '../../view/text/time-text.ts'
import { Option, type Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'

/** What `find` was given. */
export interface FindOptions {
  readonly ledger: string
  readonly tool?: string
  readonly outcome?: Outcome
  readonly input?: readonly InputQuery[]
  readonly text?: string
  readonly run?: string
  readonly session?: string
  readonly since?: GivenMoment
  readonly until?: GivenMoment
  readonly limit?: number
}

const maxTextColumns = 200
/** So many characters are shown before the text that was found. */
const charactersBefore = 30

/** Declares what `find` takes. */
export function declareFind(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'find calls and messages in all runs: by tool, input, outcome, text and time')
    .option('--tool <name>', 'calls of this tool')
    .option('--input <path=value>', 'calls with this in their input; may be repeated', inputQuery)
    .addOption(new Option('--outcome <outcome>', 'calls that ended so').choices(outcomes))
    .option('--text <text>', 'messages and calls with this text, in upper or lower case', filledText)
    .option('--run <run>', 'in this run only')
    .option('--session <id>', 'in the runs of this session only')
    .option('--since <when>', 'from then on: 12h, 3d, 2026-06-30', moment)
    .option('--until <when>', 'up to then', moment)
    .option('--limit <n>', 'at most this many', wholeNumber)
    .action(async (ledger: string, options: Omit<FindOptions, 'ledger'>) => {
      done(await find(context, { ledger, ...options }))
    })
}

/**
 * `find`: a line for each call, and for anything else that was said, in all runs. Calls are found by tool, input and
 * outcome; with these alone nothing else is.
 */
export function find(context: CommandContext, options: FindOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, run, limit = Infinity } = options
  const { json, print, say, programName } = context
  requireQuestion(options)
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = run === undefined ? undefined : await findRun(ledger, run, { programName, ledgerPath })
    const finder = finderOf(options, context.now())
    let count = 0
    let last: Found | undefined
    for await (const found of foundEvents(ledger, { ...finder, ...omitUndefined({ runId }) })) {
      count++
      last = found
      await print(json ? `${JSON.stringify(found)}\n` : `${lineOf(found, options, context.columns)}\n`)
      if (count >= limit) break
    }
    if (!json && last === undefined) say('Nothing of the kind is on record.')
    if (context.isRead && last !== undefined) {
      say(
        `See one whole: ${commandLine(programName, 'show', ledgerPath, last.runId, '--event', `${last.seq}`)}`,
      )
    }
    return exitCodes.ok
  })
}

function requireQuestion({ tool, outcome, input = [], text, run, session, since, until }: FindOptions): void {
  if ((tool ?? outcome ?? text ?? run ?? session ?? since ?? until) !== undefined || input.length > 0) return
  throw new CommandError(
    'usage',
    'Say what to look for: --tool NAME, --input PATH=VALUE, --outcome OUTCOME, --text TEXT, --since WHEN, --until WHEN.',
  )
}

function finderOf(
  { tool, outcome, input = [], text, session, since, until }: FindOptions,
  now: number,
): EventFinder {
  const [fromAt, toAt] = [since && momentAt(since, now), until && momentAt(until, now)]
  if (fromAt !== undefined && toAt !== undefined && fromAt > toAt) {
    throw new CommandError('usage', '--until is before --since, so nothing could be found. Swap them.')
  }
  return {
    call: { inputs: input, ...omitUndefined({ tool, outcome }) },
    ...omitUndefined({ text, sessionId: session, fromAt, toAt }),
  }
}

/** Where it is found, and what it says around what was looked for. */
function lineOf(found: Found, { text }: FindOptions, columns: number | undefined): string {
  const { runId, seq, at, type, tool, outcome, input } = found
  const run = columns === undefined ? runId : runId.slice(-8)
  const time = columns === undefined ? timeText(at) : timeText(at).slice(5, 16).replace('T', ' ')
  const what =
    tool === undefined ? [type] : [tool, outcome ?? 'open', ...(input ? [canonicalJson(input)] : [])]
  const head = [run, `${seq}`.padStart(4), time].join('  ')
  const room = columns === undefined ? maxTextColumns : columns - textWidth(head) - 2
  return `${head}  ${oneLine([...what, around(found.text, text)].join(' '), Math.max(1, room))}`
}

function around(passage: string, text: string | undefined): string {
  const place = text === undefined ? -1 : passage.toLowerCase().indexOf(text.toLowerCase())
  return place > charactersBefore ? `…${passage.slice(place - charactersBefore)}` : passage
}
