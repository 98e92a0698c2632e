import type { RuntimeEvent } from '@tallystick/core'
import { diffRuns, type RunsDiff, type RunTail } from '@tallystick/replay'
import type { Command } from 'commander'
import { onLedger } from '../command/arguments.ts'
import { type CommandContext, commandLine } from '../command/context.ts'
import { type ExitCode, exitCodes } from '../command/exit-code.ts'
import type { Place } from '../command/next-commands.ts'
import { counted, oneLine, spentText, table } from '../command/text.ts'
import { findRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import type { Paint } from '../terminal/paint.ts'
import { fitted, visibleText, wrapped } from '../terminal/text-width.ts'
import type { Done } from '../verbs.ts'
import { differencesText } from '../view/difference-text.ts'
import { eventText, isOfInterest } from '../view/events.ts'

/** What `diff` was given. */
export interface DiffOptions {
  readonly ledger: string
  readonly left: string
  readonly right: string
}

const maxCellCharacters = 60
/** On a narrower terminal, what the two runs did is printed one under the other. */
const sideBySideColumns = 2 * maxCellCharacters + 20

/** Declares what `diff` takes. */
export function declareDiff(verb: Command, context: CommandContext, done: Done): void {
  const about = 'show where two runs part, such as a run and its fork, side by side'
  onLedger(verb, `${about}; it leaves out deltas and progress, which export --run prints`)
    .argument('<run>', 'id of the first run')
    .argument('<other>', 'id of the second run')
    .action(async (ledger: string, left: string, right: string) => {
      done(await diff(context, { ledger, left, right }))
    })
}

/** `diff`: where two runs part, and what each did from there on, side by side. */
export function diff(
  context: CommandContext,
  { ledger: ledgerPath, left, right }: DiffOptions,
): Promise<ExitCode> {
  const { columns, json, paint, print, programName } = context
  const place = { programName, ledgerPath }
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const [one, two] = [await findRun(ledger, left, place), await findRun(ledger, right, place)]
    const found = await diffRuns(ledger, one, two)
    const text = json ? `${JSON.stringify(found)}\n` : diffText(found, paint, columns) + leftOut(place)
    await print(json || columns === undefined ? text : wrapped(text, columns))
    return exitCodes.ok
  })
}

/** Says which events are not compared, and what prints them. */
function leftOut({ programName, ledgerPath }: Place): string {
  const all = commandLine(programName, 'export', ledgerPath, '--run', 'RUN')
  return `\nLeft out: deltas and progress. Every event of a run is printed by:\n  ${all}\n`
}

function diffText(
  { shared, differences, left, right }: RunsDiff,
  paint: Paint,
  columns: number | undefined,
): string {
  const isStacked = columns !== undefined && columns < sideBySideColumns
  const same = `${counted(shared, 'event')} say the same`
  const [one, two] = [left, right].map(({ events }) => events.find(isTurn))
  const facts = isStacked
    ? `${stackedFacts('left', left)}${stackedFacts('right', right)}`
    : factsTable(left, right)
  if (one === undefined && two === undefined) return `${same}, and nothing else is said.\n\n${facts}`
  const ways = [one, two].map((event) =>
    event === undefined ? 'nothing more' : eventText(event, maxCellCharacters),
  )
  const parting = `${paint('bold', `${same}, then they part:`)}\n  left  ${ways[0]}\n  right ${ways[1]}\n`
  const reported = differences.filter(({ path }) => path !== 'type')
  return `${parting}${visibleText(differencesText(reported, ['left ', 'right']))}\n${facts}\n${isStacked ? stackedEvents(left, right, columns) : table(eventRows(left.events, right.events))}`
}

/**
 * Returns whether an event shows a decision of the run. A take-over by another process does not, unless it brings
 * another definition.
 */
function isTurn(event: RuntimeEvent): boolean {
  return isOfInterest(event) && (event.type !== 'run_resumed' || event.definition !== undefined)
}

/** Returns how a run ended, and its spending after the parting and in total, by name. */
function factsOf(tail: RunTail): readonly (readonly [name: string, value: string])[] {
  const { reason, text, own } = tail
  return [
    ['ended', reason ?? 'not yet'],
    ['from there on', spentText(tail)],
    ['own work', spentText(own)],
    ['text', oneLine(text, maxCellCharacters)],
  ]
}

function factsTable(left: RunTail, right: RunTail): string {
  return table([
    ['', 'LEFT', 'RIGHT'],
    ['run', left.runId, right.runId],
    ...[...factsOf(left)].map(([name, value], index) => [name, value, factsOf(right)[index]?.[1] ?? '']),
  ])
}

function stackedFacts(side: string, tail: RunTail): string {
  return table([[side.toUpperCase(), tail.runId], ...factsOf(tail)])
}

/** Turn by turn what the one did, and under it what the other did. */
function stackedEvents(left: RunTail, right: RunTail, columns: number): string {
  const rows = eventRows(left.events, right.events)
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
    .map((line) => `${fitted(visibleText(line), columns)}\n`)
    .join('')
}

/** The events of a turn are printed beside those of the same turn. */
function eventRows(left: readonly RuntimeEvent[], right: readonly RuntimeEvent[]): readonly string[][] {
  const [one, two] = [left, right].map((events) =>
    Map.groupBy(events.filter(isOfInterest), ({ turn }) => turn),
  )
  const turns = [...new Set([...(one?.keys() ?? []), ...(two?.keys() ?? [])])].sort((a, b) => a - b)
  return turns.flatMap((turn) => {
    const [before, after] = [one?.get(turn) ?? [], two?.get(turn) ?? []]
    return Array.from({ length: Math.max(before.length, after.length) }, (_, index) => [
      index === 0 ? `turn ${turn}` : '',
      cellText(before[index]),
      cellText(after[index]),
    ])
  })
}

/** An event in a few words. */
function cellText(event: RuntimeEvent | undefined): string {
  return event === undefined ? '' : `${event.seq} ${eventText(event, maxCellCharacters)}`
}
