import type { Message } from '@tallystick/core'
import {
  explain,
  type ExplainedAttempt,
  type ExplainedItem,
  type Explanation,
  type ReplacedMessage,
} from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { findRun } from '../find-run.ts'
import { withLedger } from '../open-ledger.ts'
import { contentText, oneLine } from '../view/content-text.ts'
import type { Paint } from '../view/paint.ts'
import { usageText } from '../view/run-ending.ts'
import { table } from '../view/table.ts'

/** What `explain` was given. */
export interface ExplainOptions {
  readonly ledger: string
  readonly run: string
  readonly turn: number
}

const shownCharactersMax = 60
const heads = ['ITEM', 'EVENTS', 'TOKENS', 'COST', 'WHAT']

/** `explain`: which events made up the request of a turn, what was replaced in it, and what each part is worth. */
export function explainTurn(
  context: CommandContext,
  { ledger: ledgerPath, run, turn }: ExplainOptions,
): Promise<ExitCode> {
  const { json, paint, print, programName } = context
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    const explanation = await explain(ledger, runId, turn)
    await print(json ? `${JSON.stringify(explanation)}\n` : asText(explanation, paint))
    return exitCodes.ok
  })
}

function asText(explanation: Explanation, paint: Paint): string {
  const { runId, turn, agent, model, requestDigest, toolChoice, attempts, items, leftOut, tokens } =
    explanation
  const billed = tokens.billed === undefined ? '' : `, ${tokens.billed} billed`
  const facts = [
    ['run', runId],
    ['turn', `${turn}, agent ${agent}, model ${model.modelId}`],
    ['request', `${requestDigest}, tool choice ${toolChoice.type}`],
    ...attempts.map((attempt) => ['attempt', attemptText(attempt)]),
    ['input', `about ${tokens.estimated} tokens${billed}`],
  ]
  const rows = [
    ...items.flatMap(itemRows),
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

function itemRows({ kind, message, index, seqs, tokens, costUsd, replaced = [] }: ExplainedItem): string[][] {
  const name = message === undefined ? kind.replace('_', ' ') : `${index} ${message.role}`
  const what = message === undefined ? '' : oneLine(messageText(message), shownCharactersMax)
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

function messageText(message: Message): string {
  switch (message.role) {
    case 'user':
      return contentText(message.parts)
    case 'assistant':
      return message.parts
        .map((part) => ('name' in part ? `${part.name}(…)` : 'text' in part ? part.text : ''))
        .join(' ')
    case 'tool':
      return message.results.map(({ name, outcome }) => `${name}: ${outcome}`).join(', ')
  }
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
