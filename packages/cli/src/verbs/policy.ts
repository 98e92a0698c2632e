import { type CallPlan } from '@tallystick/core/internal'
import { resolve } from 'node:path'
import type { Ledger, RunId } from '@tallystick/core'
import type { JsonObject, ToolEffect } from '@tallystick/core/vocabulary'
import {
  type ApprovalRules,
  type CheckedExample,
  checkExamples,
  decideByRules,
  readApprovalRules,
  type RuleDecision,
} from '@tallystick/tools/policy'
import { Argument, type Command } from '@commander-js/extra-typings'
import { type CommandContext, printEither, printJson } from '../command/context.ts'
import { exitCodes } from '../command/exit-code.ts'
import { formatCount, toOneLine } from '../command/text.ts'
import { withLedger } from '../runs/open-ledger.ts'
import type { Done } from '../verbs.ts'

/** A call of a known tool, as its check saw it, and the result of the check. */
interface CheckedCall {
  readonly runId: RunId
  readonly toolCallId: string
  readonly agent: string
  readonly tool: string
  readonly effect: ToolEffect
  readonly input: JsonObject
  readonly plan: CallPlan
}

const types = ['run_started', 'agent_handed_off', 'tool_request_ready', 'tool_requests_collected'] as const

/** Finds the recorded calls that a policy can judge and whose input is still there, in the order of their checks. */
export async function* findCheckedCalls(ledger: Ledger): AsyncGenerator<CheckedCall> {
  const agents = new Map<RunId, string>()
  const inputs = new Map<string, JsonObject>()
  for await (const event of ledger.find({ types })) {
    if (event.type === 'run_started') agents.set(event.runId, event.agent)
    if (event.type === 'agent_handed_off') agents.set(event.runId, event.to)
    if (event.type === 'tool_request_ready' && event.removed === undefined)
      inputs.set(event.toolCallId, event.input)
    if (event.type !== 'tool_requests_collected') continue
    const { runId, calls } = event
    for (const { toolCallId, name: tool, effect, plan, input: changed, refusal } of calls) {
      const input = changed ?? inputs.get(toolCallId)
      inputs.delete(toolCallId)
      // An input that does not fit, for example, is refused before a policy is asked.
      const isJudged = effect !== undefined && (refusal === undefined || refusal.outcome === 'denied')
      if (!isJudged || input === undefined) continue
      yield { runId, toolCallId, agent: agents.get(runId) ?? '', tool, effect, input, plan }
    }
  }
}

/** Declares `policy check`: a line for each example and each kind of call. Exit code 1 if an example does not hold. */
export function declarePolicy(verb: Command, context: CommandContext, done: Done): void {
  verb
    .description('check approval rules: their examples and, with a ledger, what they decide about its calls')
    .addArgument(new Argument('<action>', 'what to do').choices(['check']))
    .argument('<rules>', 'JSON file of approval rules, as readApprovalRules reads it')
    .argument('[ledger]', 'ledger whose calls the rules are tried on; nothing runs')
    .option('--json', 'print JSON; errors too, on stderr')
    .action(async (_action, path, ledger) => {
      const rules = readApprovalRules(resolve(context.workingDirectory, path))
      const examples = checkExamples(rules)
      for (const example of examples) await printExample(context, example)
      const broken = examples.filter(({ holds }) => !holds).length
      if (ledger !== undefined) await tryCalls(context, rules, ledger)
      if (!context.json) {
        const held = `${formatCount(examples.length, 'example')}: ${examples.length - broken} hold, ${broken} do not`
        await context.print(`${formatCount(rules.rules.length, 'rule')}, ${held}\n`)
      }
      done(broken === 0 ? exitCodes.ok : exitCodes.failed)
    })
}

async function printExample(
  context: CommandContext,
  { number, example, decided, holds }: CheckedExample,
): Promise<void> {
  const { paint, columns = 200 } = context
  const mark = holds ? paint('green', 'ok    ') : paint('red', 'FAILED')
  const { tool, input = {} } = example.call
  const is = holds ? decided.decision : `${decided.decision}, not ${example.decision}: ${decided.reason}`
  const line = `example ${number} ${tool} ${JSON.stringify(input)} ${is}`
  await printEither(
    context,
    { example: number, holds, demanded: example.decision, ...decided },
    `${mark}  ${toOneLine(line, columns - 8)}\n`,
  )
}

/** The result of the check of a call, in the words of rules. */
const decisions: Readonly<Record<CheckedCall['plan'], RuleDecision>> = {
  run: 'allow',
  ask: 'ask',
  settle: 'deny',
}

/** Prints a line for each tool: what happened to its calls, and what the rules decide about them. */
async function tryCalls(context: CommandContext, rules: ApprovalRules, ledgerPath: string): Promise<void> {
  const counts = new Map<string, number>()
  await withLedger(ledgerPath, 'read', async (ledger) => {
    for await (const call of findCheckedCalls(ledger)) {
      const { runId, toolCallId, plan } = call
      const { decision, rule, reason } = decideByRules(rules, call)
      const recorded = decisions[plan]
      if (context.json)
        await printJson(context, { runId, toolCallId, tool: call.tool, recorded, decision, rule, reason })
      const by = rule === undefined ? 'no rule' : `rule ${rule}`
      const line = `${toOneLine(call.tool, 64)}  ${recorded} on record, ${decision} by ${by}`
      counts.set(line, (counts.get(line) ?? 0) + 1)
    }
  })
  if (context.json) return
  for (const [line, count] of counts) await context.print(`${line}  ${formatCount(count, 'call')}\n`)
  if (counts.size === 0) context.say('The ledger holds no call that was checked.')
}
