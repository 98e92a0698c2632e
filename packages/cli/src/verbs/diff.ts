import type { RuntimeEvent } from '@tallystick/core'
import { diffRuns, type RunsDiff, type RunTail } from '@tallystick/replay'
import type { Command } from '@commander-js/extra-typings'
import { declareRunArguments } from '../command/arguments.ts'
import { type CommandContext, formatCommand, printJson } from '../command/context.ts'
import { formatCount, toOneLine, formatSpent, formatTable } from '../command/text.ts'
import { findRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import type { Paint } from '../terminal/paint.ts'
import { fitText, makeVisible, wrapText } from '../terminal/text-width.ts'
import { formatDifferences } from '../view/difference-text.ts'
import { formatEvent, isOfInterest } from '../view/events.ts'

const maxCellCharacters = 60
/** On a narrower terminal, what the two runs did is printed one under the other. */
const sideBySideColumns = 2 * maxCellCharacters + 20

export function declareDiff(verb: Command, context: CommandContext): void {
  const about = 'show where two runs part, such as a run and its fork, side by side'
  declareRunArguments(verb, `${about}; it leaves out deltas and progress, which export --run prints`)
    .argument('<other>', 'id of the second run')
    .action(async (ledgerPath, left, right) => {
      const { columns, json, paint, programName } = context
      const place = { programName, ledgerPath }
      const found = await withLedger(ledgerPath, 'read', async (ledger) =>
        diffRuns(ledger, await findRun(ledger, left, place), await findRun(ledger, right, place)),
      )
      if (json) return await printJson(context, found)
      const all = formatCommand(programName, 'export', ledgerPath, '--run', 'RUN')
      const leftOut = `\nLeft out: deltas and progress. Every event of a run is printed by:\n  ${all}\n`
      const text = formatDiff(found, paint, columns) + leftOut
      await context.print(columns === undefined ? text : wrapText(text, columns))
    })
}

function formatDiff(
  { shared, differences, left, right }: RunsDiff,
  paint: Paint,
  columns: number | undefined,
): string {
  const isStacked = columns !== undefined && columns < sideBySideColumns
  const same = `${formatCount(shared, 'event')} ${shared === 1 ? 'is' : 'are'} equal`
  const [one, two] = [left, right].map(({ events }) => events.find(isTurn))
  const [leftFacts, rightFacts] = [listFacts(left), listFacts(right)]
  const facts = isStacked
    ? formatTable([['LEFT', left.runId], ...leftFacts]) + formatTable([['RIGHT', right.runId], ...rightFacts])
    : formatTable([
        ['', 'LEFT', 'RIGHT'],
        ['run', left.runId, right.runId],
        ...leftFacts.map(([name, value], index) => [name, value, rightFacts[index]?.[1] ?? '']),
      ])
  if (one === undefined && two === undefined) return `${same}; nothing differs.\n\n${facts}`
  const ways = [one, two].map((event) =>
    event === undefined ? 'nothing more' : formatEvent(event, maxCellCharacters),
  )
  const parting = `${paint('bold', `${same}, then they part:`)}\n  left  ${ways[0]}\n  right ${ways[1]}\n`
  const reported = differences.filter(({ path }) => path !== 'type')
  return `${parting}${makeVisible(formatDifferences(reported, ['left ', 'right']))}\n${facts}\n${isStacked ? formatStackedEvents(left, right, columns) : formatTable(toEventRows(left.events, right.events))}`
}

/** A take-over by another process is not a decision of the run, unless it brings another definition. */
function isTurn(event: RuntimeEvent): boolean {
  return isOfInterest(event) && (event.type !== 'run_resumed' || event.definition !== undefined)
}

/** The end of a run, and its spending from there on and in total. */
function listFacts(tail: RunTail): readonly (readonly [name: string, value: string])[] {
  const { reason, text, own } = tail
  return [
    ['ended', reason ?? 'not yet'],
    ['from there on', formatSpent(tail)],
    ['own work', formatSpent(own)],
    ['text', toOneLine(text, maxCellCharacters)],
  ]
}

/** Each turn of the first run, and under it the same turn of the second. */
function formatStackedEvents(left: RunTail, right: RunTail, columns: number): string {
  const rows = toEventRows(left.events, right.events)
  const turns: { readonly name: string; readonly left: string[]; readonly right: string[] }[] = []
  for (const [name = '', before = '', after = ''] of rows) {
    if (name !== '') turns.push({ name, left: [], right: [] })
    if (before !== '') turns.at(-1)?.left.push(before)
    if (after !== '') turns.at(-1)?.right.push(after)
  }
  const lines = (side: string, events: readonly string[]): readonly string[] =>
    events.map((event, index) => `  ${(index === 0 ? side : '').padEnd(6)}${event}`)
  return turns
    .flatMap((turn) => [turn.name, ...lines('left', turn.left), ...lines('right', turn.right)])
    .map((line) => `${fitText(makeVisible(line), columns)}\n`)
    .join('')
}

/** The events of a turn are printed beside those of the same turn. */
function toEventRows(left: readonly RuntimeEvent[], right: readonly RuntimeEvent[]): readonly string[][] {
  const [one, two] = [left, right].map((events) =>
    Map.groupBy(events.filter(isOfInterest), ({ turn }) => turn),
  )
  const turns = [...new Set([...(one?.keys() ?? []), ...(two?.keys() ?? [])])].sort((a, b) => a - b)
  return turns.flatMap((turn) => {
    const [before, after] = [one?.get(turn) ?? [], two?.get(turn) ?? []]
    return Array.from({ length: Math.max(before.length, after.length) }, (_, index) => [
      index === 0 ? `turn ${turn}` : '',
      formatCell(before[index]),
      formatCell(after[index]),
    ])
  })
}

function formatCell(event: RuntimeEvent | undefined): string {
  return event === undefined ? '' : `${event.seq} ${formatEvent(event, maxCellCharacters)}`
}
