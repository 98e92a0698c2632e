import type { EventOf, EventType, RuntimeEvent } from '@tallystick/core'
import { textOf } from '@tallystick/core'
import { diffRuns, type RunsDiff, type RunTail } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { findRun } from '../find-run.ts'
import { withLedger } from '../open-ledger.ts'
import { contentText, oneLine } from '../view/content-text.ts'
import { differencesText } from '../view/difference-text.ts'
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
    eventText(left[index]),
    eventText(right[index]),
  ])
}

/** An event in a few words. */
function eventText(event: RuntimeEvent | undefined): string {
  if (event === undefined) return ''
  return oneLine([`${event.seq}`, event.type, ...wordsOf(event)].join(' '), cellCharactersMax)
}

/** What tells an event of a type from another one. */
const words: { readonly [T in EventType]?: (event: EventOf<T>) => readonly string[] } = {
  input_received: ({ message }) => [contentText(message.parts)],
  model_call_started: ({ model }) => [model.modelId],
  assistant_message_finished: ({ parts }) => [textOf(parts)],
  tool_request_ready: ({ name, input }) => [name, JSON.stringify(input)],
  tool_started: ({ name }) => [name],
  tool_result: ({ name, outcome, content }) => [name, outcome, contentText(content)],
  agent_handed_off: ({ to }) => [to],
  run_finished: ({ reason }) => [reason],
}

function wordsOf(event: RuntimeEvent): readonly string[] {
  const ofType = words[event.type] as ((event: RuntimeEvent) => readonly string[]) | undefined
  return ofType?.(event) ?? []
}
