import type { Ledger, Message, RunId } from '@tallystick/core'
import { canonicalJson, type EventType } from '@tallystick/core/vocabulary'
import {
  explain,
  type ExplainedAttempt,
  type ExplainedItem,
  type Explanation,
  type ReplacedMessage,
} from '@tallystick/replay'
import type { Command } from 'commander'
import { onLedger, wholeNumber } from '../command/arguments.ts'
import type { CommandContext } from '../command/context.ts'
import { type ExitCode, exitCodes } from '../command/exit-code.ts'
import { contentText, oneLine, table, usageText } from '../command/text.ts'
import { findRun } from '../runs/find-run.ts'
import { withLedger } from '../runs/open-ledger.ts'
import { eventsOf } from '../runs/read-run.ts'
import { CallStories, type CallStory } from '../runs/run-story.ts'
import type { Paint } from '../terminal/paint.ts'
import type { Done } from '../verbs.ts'
import { additionText } from '../view/run-facts.ts'

/** What `explain` was given. */
export interface ExplainOptions {
  readonly ledger: string
  readonly run: string
  readonly turn: number
}

const maxShownCharacters = 60
const heads = ['ITEM', 'EVENTS', 'TOKENS', 'COST', 'WHAT']

/** Declares what `explain` takes. */
export function declareExplain(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, "show which events each part of a turn's request came from, and its tokens and cost")
    .argument('<run>', 'id of the run')
    .argument('<turn>', 'number of the turn', wholeNumber)
    .action(async (ledger: string, run: string, turn: number) => {
      done(await explainTurn(context, { ledger, run, turn }))
    })
}

/** `explain`: which events made up the request of a turn, what was replaced in it, and what each part is worth. */
export function explainTurn(
  context: CommandContext,
  { ledger: ledgerPath, run, turn }: ExplainOptions,
): Promise<ExitCode> {
  const { json, paint, print, programName } = context
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    const explanation = await explain(ledger, runId, turn)
    const stories = await callStories(ledger, runId)
    await print(
      json
        ? `${JSON.stringify({ ...explanation, calls: shownCalls(explanation, stories) })}\n`
        : asText(explanation, stories, paint),
    )
    return exitCodes.ok
  })
}

/** What was asked for, changed and run, in the calls of a run. */
async function callStories(ledger: Ledger, runId: RunId): Promise<CallStories> {
  const stories = new CallStories()
  for await (const event of eventsOf(ledger, runId, callTypes)) stories.follow(event)
  return stories
}

const callTypes: readonly EventType[] = [
  ...(['tool_request_ready', 'tool_requests_collected', 'approval_decided'] as const),
  ...(['tool_started', 'tool_result'] as const),
]

/** The calls whose results are part of the request. */
function shownCalls({ items }: Explanation, stories: CallStories): readonly CallStory[] {
  return items.flatMap(({ message }) =>
    message?.role === 'tool' ? message.results.flatMap(({ toolCallId }) => stories.of(toolCallId) ?? []) : [],
  )
}

function asText(explanation: Explanation, stories: CallStories, paint: Paint): string {
  const { runId, turn, agent, model, requestDigest, toolChoice, attempts, items, leftOut, tokens } =
    explanation
  const { additions = [] } = explanation
  const billed = tokens.billed === undefined ? '' : `, ${tokens.billed} billed`
  const facts = [
    ['run', runId],
    ['turn', `${turn}, agent ${agent}, model ${model.modelId}`],
    ['request', `${requestDigest}, tool choice ${toolChoice.type}`],
    ...additions.map((addition) => [addition.replaces ? 'replaced' : 'added', additionText(addition)]),
    ...attempts.map((attempt) => ['attempt', attemptText(attempt)]),
    ['input', `about ${tokens.estimated} tokens${billed}`],
  ]
  const rows = [
    ...items.flatMap((item) => itemRows(item, stories)),
    ...leftOut.flatMap((message) => replacedRows(message, 'left out: ')),
  ]
  const [head = '', ...lines] = table([heads, ...rows]).split('\n')
  return `${table(facts)}\n${paint('bold', head)}\n${lines.join('\n')}`
}

function attemptText({ attempt, seq, outcome, failure, usage, costUsd }: ExplainedAttempt): string {
  const ending = failure === undefined ? outcome.replace('_', ' ') : `${outcome} (${failure})`
  const counted = usage === undefined ? '' : `, ${usageText(usage)}`
  return `${attempt} at event ${seq}: ${ending}${counted}${costText(costUsd, ', ')}`
}

function itemRows(
  { kind, message, index, seqs, tokens, costUsd, replaced = [] }: ExplainedItem,
  stories: CallStories,
): string[][] {
  const name = message === undefined ? kind.replace('_', ' ') : `${index} ${message.role}`
  const what = message === undefined ? '' : messageText(message, stories)
  return [
    [name, rangesText(seqs), `${tokens}`, costText(costUsd, ''), what],
    ...replaced.flatMap((each) => replacedRows(each, '  replaced: ')),
  ]
}

function replacedRows({ role, seqs, tokens, replaced = [] }: ReplacedMessage, lead: string): string[][] {
  return [
    [`${lead}${role}`, rangesText(seqs), `${tokens}`, '', ''],
    ...replaced.flatMap((each) => replacedRows(each, `  ${lead}`)),
  ]
}

function costText(costUsd: number | undefined, lead: string): string {
  return costUsd === undefined ? '' : `${lead}$${costUsd.toFixed(6)}`
}

function messageText(message: Message, stories: CallStories): string {
  switch (message.role) {
    case 'user':
      return oneLine(contentText(message.parts), maxShownCharacters)
    case 'assistant':
      return oneLine(
        message.parts
          .map((part) => ('name' in part ? `${part.name}(…)` : 'text' in part ? part.text : ''))
          .join(' '),
        maxShownCharacters,
      )
    case 'tool':
      // What was changed is never cut off.
      return message.results
        .map(({ name, outcome, toolCallId }) => `${name}: ${outcome}${changeText(stories.of(toolCallId))}`)
        .join(', ')
  }
}

/** What ran where that is not what the model asked for, and who decided. */
function changeText(story: CallStory | undefined): string {
  const { guarded, decision, executed } = story ?? {}
  const facts = [
    ...(executed && (guarded ?? decision?.input) ? [`ran with ${canonicalJson(executed)}`] : []),
    ...(decision ? [`${decision.approved ? 'approved' : 'denied'} by ${decision.by}`] : []),
  ]
  return facts.length === 0 ? '' : ` (${facts.join(', ')})`
}

/** Numbers in ascending order as ranges: `4-9,12`. */
function rangesText(seqs: readonly number[]): string {
  const ranges: [number, number][] = []
  for (const seq of seqs) {
    const last = ranges.at(-1)
    if (last && last[1] + 1 === seq) last[1] = seq
    else ranges.push([seq, seq])
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(',')
}
