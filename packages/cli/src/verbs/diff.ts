import type { RuntimeEvent } from '@tallystick/core'
import { diffRuns, type RunsDiff, type RunTail } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { findRun } from '../find-run.ts'
import { withLedger } from '../open-ledger.ts'
import { oneLine } from '../view/content-text.ts'
import { differencesText } from '../view/difference-text.ts'
import { eventText } from '../view/event-text.ts'
import { counted, usageText } from '../view/run-ending.ts'
import { table } from '../view/table.ts'

/** What `diff` was given. */
export interface DiffOptions {
  readonly ledger: string
  readonly left: string
  readonly right: string
}

const cellCharactersMax = 60

/** `diff`: where two runs part, and what each did from there on, side by side. */
export function diff(
  context: CommandContext,
  { ledger: ledgerPath, left, right }: DiffOptions,
): Promise<ExitCode> {
  const place = { programName: context.programName, ledgerPath }
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const [one, two] = [await findRun(ledger, left, place), await findRun(ledger, right, place)]
    const found = await diffRuns(ledger, one, two)
    await context.print(context.json ? `${JSON.stringify(found)}\n` : diffText(found))
    return exitCodes.ok
  })
}

function diffText({ shared, differences, left, right }: RunsDiff): string {
  const same = `${counted(shared, 'event')} say the same`
  const [one, two] = [left.events[0], right.events[0]]
  if (one === undefined && two === undefined) return `${same}, and there are no others.\n`
  const parting = `${same}, then: ${one?.type ?? 'nothing'} left, ${two?.type ?? 'nothing'} right\n`
  const rows = [
    ['', 'LEFT', 'RIGHT'],
    ['run', left.runId, right.runId],
    ...[...factsOf(left)].map(([name, value], index) => [name, value, factsOf(right)[index]?.[1] ?? '']),
  ]
  return (
    `${parting}${differencesText(differences, ['left ', 'right'])}\n${table(rows)}\n` +
    table(eventRows(left.events, right.events))
  )
}

/** What a run did from there on, by name. */
function factsOf(tail: RunTail): readonly (readonly [name: string, value: string])[] {
  const { reason, turns, toolCalls, usage, costUsd, text } = tail
  return [
    ['ended', reason ?? 'not yet'],
    ['used', `${counted(turns, 'turn')}, ${counted(toolCalls, 'tool call')}`],
    ['tokens', usageText(usage)],
    ['cost', costUsd === undefined ? '?' : `$${costUsd.toFixed(4)}`],
    ['text', oneLine(text, cellCharactersMax)],
  ]
}

function eventRows(left: readonly RuntimeEvent[], right: readonly RuntimeEvent[]): readonly string[][] {
  return Array.from({ length: Math.max(left.length, right.length) }, (_, index) => [
    cellText(left[index]),
    cellText(right[index]),
  ])
}

/** An event in a few words. */
function cellText(event: RuntimeEvent | undefined): string {
  return event === undefined ? '' : `${event.seq} ${eventText(event, cellCharactersMax)}`
}
