import { omitUndefined } from '@tallystick/core/internal'
import { outcomes, toCanonicalJson } from '@tallystick/core/vocabulary'
import { type EventSearch, type FoundEvent, type InputQuery, searchEvents } from '@tallystick/ledger'
import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { parseFilled, parseMoment, toTime, declareLedger, parseWholeNumber } from '../command/arguments.ts'
import { type CommandContext, formatCommand, printEither } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import { toOneLine, formatTime } from '../command/text.ts'
import { findRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { measureText } from '../terminal/text-width.ts'

/** Appends a query such as `order.id=17` or `items.0.sku=tea` to the earlier ones. */
function parseInputQuery(text: string, before: readonly InputQuery[] = []): readonly InputQuery[] {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('It has to be a path and a value, such as order.id=17.')
  return [...before, { path: text.slice(0, at).split('.'), value: text.slice(at + 1) }]
}

const maxTextColumns = 200
/** At most this many characters are shown before the text that was found. */
const charactersBefore = 30

/** Declares `find`. With a tool, an input or an outcome it finds calls only. */
export function declareFind(verb: Command, context: CommandContext): void {
  declareLedger(verb, 'find calls and messages in all runs: by tool, input, outcome, text and time')
    .option('--tool <name>', 'calls of this tool')
    .option('--input <path=value>', 'calls with this in their input; may be repeated', parseInputQuery)
    .addOption(new Option('--outcome <outcome>', 'calls with this outcome').choices(outcomes))
    .option('--text <text>', 'messages and calls with this text, in upper or lower case', parseFilled)
    .option('--run <run>', 'in this run only')
    .option('--session <id>', 'in the runs of this session only')
    .option('--since <when>', 'from then on: 12h, 3d, 2026-06-30', parseMoment)
    .option('--until <when>', 'up to then', parseMoment)
    .option('--limit <n>', 'at most this many', parseWholeNumber)
    .action(async (ledgerPath, { tool, outcome, input: inputs = [], text, run, ...options }) => {
      const { session, since, until, limit = Infinity } = options
      const { json, say, programName } = context
      if (
        (tool ?? outcome ?? text ?? run ?? session ?? since ?? until) === undefined &&
        inputs.length === 0
      ) {
        throw new CommandError(
          'usage',
          'Say what to look for: --tool NAME, --input PATH=VALUE, --outcome OUTCOME, --text TEXT, --since WHEN, --until WHEN.',
        )
      }
      const now = context.now()
      const [fromAt, toAt] = [since && toTime(since, now), until && toTime(until, now)]
      if (fromAt !== undefined && toAt !== undefined && fromAt > toAt) {
        throw new CommandError('usage', '--until is before --since, so nothing could be found. Swap them.')
      }
      await withLedger(ledgerPath, 'read', async (ledger) => {
        const runId = run === undefined ? undefined : await findRun(ledger, run, { programName, ledgerPath })
        const finder: EventSearch = {
          call: { inputs, ...omitUndefined({ tool, outcome }) },
          ...omitUndefined({ text, runId, sessionId: session, fromAt, toAt }),
        }
        let count = 0
        let last: FoundEvent | undefined
        for await (const found of searchEvents(ledger, finder)) {
          count++
          last = found
          await printEither(context, found, `${formatLine(found, text, context.columns)}\n`)
          if (count >= limit) break
        }
        if (!json && last === undefined) say('Nothing of the kind is on record.')
        if (context.isRead && last !== undefined) {
          const show = formatCommand(programName, 'show', ledgerPath, last.runId, '--event', `${last.seq}`)
          say(`See one whole: ${show}`)
        }
      })
    })
}

function formatLine(found: FoundEvent, text: string | undefined, columns: number | undefined): string {
  const { runId, seq, at, type, tool, outcome, input } = found
  const run = columns === undefined ? runId : runId.slice(-8)
  const time = columns === undefined ? formatTime(at) : formatTime(at).slice(5, 16).replace('T', ' ')
  const what =
    tool === undefined ? [type] : [tool, outcome ?? 'open', ...(input ? [toCanonicalJson(input)] : [])]
  const head = [run, `${seq}`.padStart(4), time].join('  ')
  const room = columns === undefined ? maxTextColumns : columns - measureText(head) - 2
  const place = text === undefined ? -1 : found.text.toLowerCase().indexOf(text.toLowerCase())
  const passage = place > charactersBefore ? `…${found.text.slice(place - charactersBefore)}` : found.text
  return `${head}  ${toOneLine([...what, passage].join(' '), Math.max(1, room))}`
}
