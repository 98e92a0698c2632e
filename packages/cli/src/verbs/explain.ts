import { formatContent } from '@tallystick/ledger'
import type { Message } from '@tallystick/core'
import { toCanonicalJson, type EventType } from '@tallystick/core/vocabulary'
import {
  explain,
  type ExplainedAttempt,
  type ExplainedItem,
  type Explanation,
  type ReplacedMessage,
} from '@tallystick/replay'
import type { Command } from '@commander-js/extra-typings'
import { declareRunArguments, parseWholeNumber } from '../command/arguments.ts'
import { type CommandContext, printEither } from '../command/context.ts'
import { toOneLine, formatTable, formatUsage } from '../command/text.ts'
import { withRun } from '../runs/find-run.ts'
import { readEvents } from '../runs/read-run.ts'
import { CallStories } from '../runs/run-story.ts'
import type { Paint } from '../terminal/paint.ts'
import { formatAddition } from '../view/run-facts.ts'

const maxShownCharacters = 60
const heads = ['ITEM', 'EVENTS', 'TOKENS', 'COST', 'WHAT']

export function declareExplain(verb: Command, context: CommandContext): void {
  declareRunArguments(
    verb,
    "show which events each part of a turn's request came from, and its tokens and cost",
  )
    .argument('<turn>', 'number of the turn', parseWholeNumber)
    .action((ledgerPath, run, turn) =>
      withRun(context, { ledger: ledgerPath, run }, 'read', async (ledger, runId) => {
        const explanation = await explain(ledger, runId, turn)
        const stories = new CallStories()
        for await (const event of readEvents(ledger, runId, callTypes)) stories.follow(event)
        // The calls whose results are part of the request.
        const calls = explanation.items.flatMap(({ message }) =>
          message?.role === 'tool'
            ? message.results.flatMap(({ toolCallId }) => stories.of(toolCallId) ?? [])
            : [],
        )
        const text = formatExplanation(explanation, stories, context.paint)
        await printEither(context, { ...explanation, calls }, text)
      }),
    )
}

const callTypes: readonly EventType[] = [
  ...(['tool_request_ready', 'tool_requests_collected', 'approval_decided'] as const),
  ...(['tool_started', 'tool_result'] as const),
]

function formatExplanation(explanation: Explanation, stories: CallStories, paint: Paint): string {
  const { runId, turn, agent, model, requestDigest, toolChoice, attempts, items, leftOut, tokens } =
    explanation
  const { additions = [] } = explanation
  const billed = tokens.billed === undefined ? '' : `, ${tokens.billed} billed`
  const facts = [
    ['run', runId],
    ['turn', `${turn}, agent ${agent}, model ${model.modelId}`],
    ['request', `${requestDigest}, tool choice ${toolChoice.type}`],
    ...additions.map((addition) => [addition.replaces ? 'replaced' : 'added', formatAddition(addition)]),
    ...attempts.map((attempt) => ['attempt', formatAttempt(attempt)]),
    ['input', `about ${tokens.estimated} tokens${billed}`],
  ]
  const rows = [
    ...items.flatMap((item) => toItemRows(item, stories)),
    ...leftOut.flatMap((message) => toReplacedRows(message, 'left out: ')),
  ]
  const [head = '', ...lines] = formatTable([heads, ...rows]).split('\n')
  return `${formatTable(facts)}\n${paint('bold', head)}\n${lines.join('\n')}`
}

function formatAttempt({ attempt, seq, outcome, failure, usage, costUsd }: ExplainedAttempt): string {
  const ending = failure === undefined ? outcome.replace('_', ' ') : `${outcome} (${failure})`
  const counted = usage === undefined ? '' : `, ${formatUsage(usage)}`
  return `${attempt} at event ${seq}: ${ending}${counted}${formatCost(costUsd, ', ')}`
}

function toItemRows(
  { kind, message, index, seqs, tokens, costUsd, replaced = [] }: ExplainedItem,
  stories: CallStories,
): string[][] {
  const name = message === undefined ? kind.replace('_', ' ') : `${index} ${message.role}`
  const what = message === undefined ? '' : formatMessage(message, stories)
  return [
    [name, formatRanges(seqs), `${tokens}`, formatCost(costUsd, ''), what],
    ...replaced.flatMap((each) => toReplacedRows(each, '  replaced: ')),
  ]
}

function toReplacedRows({ role, seqs, tokens, replaced = [] }: ReplacedMessage, lead: string): string[][] {
  return [
    [`${lead}${role}`, formatRanges(seqs), `${tokens}`, '', ''],
    ...replaced.flatMap((each) => toReplacedRows(each, `  ${lead}`)),
  ]
}

function formatCost(costUsd: number | undefined, lead: string): string {
  return costUsd === undefined ? '' : `${lead}$${costUsd.toFixed(6)}`
}

function formatMessage(message: Message, stories: CallStories): string {
  switch (message.role) {
    case 'user':
      return toOneLine(formatContent(message.parts), maxShownCharacters)
    case 'assistant':
      return toOneLine(
        message.parts
          .map((part) => ('name' in part ? `${part.name}(…)` : 'text' in part ? part.text : ''))
          .join(' '),
        maxShownCharacters,
      )
    case 'tool':
      // The input that ran, if it was changed, and who decided: never cut off.
      return message.results
        .map(({ name, outcome, toolCallId }) => {
          const { guarded, decision, executed } = stories.of(toolCallId) ?? {}
          const facts = [
            ...(executed && (guarded ?? decision?.input) ? [`ran with ${toCanonicalJson(executed)}`] : []),
            ...(decision ? [`${decision.approved ? 'approved' : 'denied'} by ${decision.by}`] : []),
          ]
          return `${name}: ${outcome}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`
        })
        .join(', ')
  }
}

/** Numbers in ascending order as ranges: `4-9,12`. */
function formatRanges(seqs: readonly number[]): string {
  const ranges: [number, number][] = []
  for (const seq of seqs) {
    const last = ranges.at(-1)
    if (last && last[1] + 1 === seq) last[1] = seq
    else ranges.push([seq, seq])
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(',')
}
