import { resolve } from 'node:path'
import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import type { CallPlan, EventOf, JsonObject, ToolEffect } from '@tallystick/core/vocabulary'
import {
  type ApprovalRules,
  type CheckedExample,
  checkExamples,
  decideByRules,
  readApprovalRules,
  type RuleDecision,
} from '@tallystick/tools/policy'
import { Argument, type Command } from 'commander'
import type { CommandContext } from '../command/context.ts'
import { type ExitCode, exitCodes } from '../command/exit-code.ts'
import { counted, oneLine } from '../command/text.ts'
import { withLedger } from '../runs/open-ledger.ts'
import type { Done } from '../verbs.ts'

/** A call whose tool was found, as its check saw it, with what came of the check. */
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

/** Every call on record that a policy may judge and whose input is still there, in the order in which they were checked. */
export async function* checkedCalls(ledger: Ledger): AsyncGenerator<CheckedCall> {
  const agents = new Map<RunId, string>()
  const inputs = new Map<string, JsonObject>()
  for await (const event of ledger.find({ types })) {
    const agent = agentFrom(event)
    if (agent !== undefined) agents.set(event.runId, agent)
    if (event.type === 'tool_request_ready' && event.removed === undefined)
      inputs.set(event.toolCallId, event.input)
    if (event.type === 'tool_requests_collected') yield* callsOf(event, agents.get(event.runId) ?? '', inputs)
  }
}

function agentFrom(event: RuntimeEvent): string | undefined {
  if (event.type === 'run_started') return event.agent
  return event.type === 'agent_handed_off' ? event.to : undefined
}

function* callsOf(
  { runId, calls }: EventOf<'tool_requests_collected'>,
  agent: string,
  inputs: Map<string, JsonObject>,
): Generator<CheckedCall> {
  for (const { toolCallId, name: tool, effect, plan, input: changed, refusal } of calls) {
    const input = changed ?? inputs.get(toolCallId)
    inputs.delete(toolCallId)
    // An input that does not fit, say, is refused before a policy is asked.
    const isJudged = effect !== undefined && (refusal === undefined || refusal.outcome === 'denied')
    if (!isJudged || input === undefined) continue
    yield { runId, toolCallId, agent, tool, effect, input, plan }
  }
}

/** What `policy check` was given. */
export interface PolicyVerbOptions {
  /** File of the rules. */
  readonly rules: string
  /** Its calls are tried, too. */
  readonly ledger?: string
}

/** Declares what `policy` takes. */
export function declarePolicy(verb: Command, context: CommandContext, done: Done): void {
  verb
    .description('check approval rules: their examples and, with a ledger, what they decide about its calls')
    .addArgument(new Argument('<action>', 'what to do').choices(['check']))
    .argument('<rules>', 'JSON file of approval rules, as readApprovalRules reads it')
    .argument('[ledger]', 'ledger whose calls the rules are tried on; nothing runs')
    .option('--json', 'print JSON; errors too, on stderr')
    .action(async (_action: string, rules: string, ledger: string | undefined) => {
      done(await checkPolicy(context, { rules, ...(ledger !== undefined && { ledger }) }))
    })
}

/** `policy check`: a line for each example and each kind of call. Exit code 1 where an example does not hold. */
export async function checkPolicy(
  context: CommandContext,
  { rules: path, ledger }: PolicyVerbOptions,
): Promise<ExitCode> {
  const rules = readApprovalRules(resolve(context.workingDirectory, path))
  const examples = checkExamples(rules)
  for (const example of examples) await printExample(context, example)
  const broken = examples.filter(({ holds }) => !holds).length
  if (ledger !== undefined) await tryCalls(context, rules, ledger)
  if (!context.json) {
    const held = `${counted(examples.length, 'example')}: ${examples.length - broken} hold, ${broken} do not`
    await context.print(`${counted(rules.rules.length, 'rule')}, ${held}\n`)
  }
  return broken === 0 ? exitCodes.ok : exitCodes.failed
}

async function printExample(
  { json, print, paint, columns }: CommandContext,
  { number, example, decided, holds }: CheckedExample,
): Promise<void> {
  if (json) {
    await print(`${JSON.stringify({ example: number, holds, demanded: example.decision, ...decided })}\n`)
    return
  }
  const mark = holds ? paint('green', 'ok    ') : paint('red', 'FAILED')
  const { tool, input = {} } = example.call
  const is = holds ? decided.decision : `${decided.decision}, not ${example.decision}: ${decided.reason}`
  const line = `example ${number} ${tool} ${JSON.stringify(input)} ${is}`
  await print(`${mark}  ${oneLine(line, (columns ?? 200) - 8)}\n`)
}

/** What came of the check of a call, in the words of rules. */
const decisionOf: Readonly<Record<CheckedCall['plan'], RuleDecision>> = {
  run: 'allow',
  ask: 'ask',
  settle: 'deny',
}

/** A line for each tool, what came of its calls, and what the rules decide about them. */
async function tryCalls(context: CommandContext, rules: ApprovalRules, ledgerPath: string): Promise<void> {
  const counts = new Map<string, number>()
  await withLedger(ledgerPath, 'read', async (ledger) => {
    for await (const call of checkedCalls(ledger)) {
      const { runId, toolCallId, plan } = call
      const { decision, rule, reason } = decideByRules(rules, call)
      const recorded = decisionOf[plan]
      if (context.json) {
        const row = { runId, toolCallId, tool: call.tool, recorded, decision, rule, reason }
        await context.print(`${JSON.stringify(row)}\n`)
      }
      const by = rule === undefined ? 'no rule' : `rule ${rule}`
      const line = `${oneLine(call.tool, 64)}  ${recorded} on record, ${decision} by ${by}`
      counts.set(line, (counts.get(line) ?? 0) + 1)
    }
    return exitCodes.ok
  })
  if (context.json) return
  for (const [line, count] of counts) await context.print(`${line}  ${counted(count, 'call')}\n`)
  if (counts.size === 0) context.say('The ledger holds no call that was checked.')
}
