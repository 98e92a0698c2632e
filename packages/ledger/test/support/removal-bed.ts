import {
  createRuntime,
  defineAgent,
  type Ledger,
  type RunId,
  type Runtime,
  type RuntimeEvent,
} from '@tallystick/core'
import { manualClock, scriptedModel, testTool, type TestTool } from '@tallystick/testkit'
import { verifyLedger, type Keyring, type StoreVerdict } from '@tallystick/ledger'
import { expect } from 'vitest'

/** A store of its own for a test, opened as often as it likes. */
export interface RemovalBed {
  readonly open: (options?: { readonly keys?: Keyring }) => Ledger
  /** Whether the bytes are anywhere in what the store keeps. */
  readonly holds: (bytes: string) => Promise<boolean>
  /** Changes rows that the rules protect, as the owner of the store can. */
  readonly tamper: (statement: string) => Promise<void>
}

/** What must not be left. */
export const secret: string = 'the secret of Seoul'
/** What is kept once. */
export const large: string = 'a large secret. '.repeat(4_000)

/** A tool that a person is asked about. */
function asking(answer: string): TestTool {
  return testTool({ name: 'look', effect: 'write', check: () => ({ kind: 'ask' }), run: () => answer })
}

/** A run with a large tool result, an approval and two turns; suspended for the approval, or driven to its end. */
export async function play(
  ledger: Ledger,
  {
    subject,
    sessionId,
    context,
    approve = true,
  }: { subject?: string; sessionId?: string; context?: unknown; approve?: boolean } = {},
): Promise<RunId> {
  const usage = { inputTokens: 120, outputTokens: 17 }
  const model = scriptedModel([
    {
      reasoning: `About ${secret}.`,
      text: `I look for ${secret}.`,
      toolCalls: [{ id: 'c1', name: 'look', input: { for: secret } }],
      usage,
    },
    { text: `Found ${secret}.`, usage },
  ])
  const look = asking(`${large}${secret}`)
  const agent = defineAgent({ name: 'finder', instructions: `Look for ${secret}.`, model, tools: [look] })
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock: manualClock() } })
  const given: object = context === undefined ? {} : { context }
  const run = runtime.run(agent, `Where is ${secret}?`, {
    ...(subject !== undefined && { subject }),
    ...(sessionId !== undefined && { sessionId }),
    ...given,
  })
  const { pendingApprovals } = await run.result
  if (approve) {
    // The inbox holds what an approver writes, too.
    const input = { for: `${secret}, as approved` }
    await run.approve(pendingApprovals[0]?.toolCallId ?? '', { by: 'me', input })
    const { reason } = await runtime.resume(run.id).result
    expect(reason).toBe('answered')
  }
  await runtime.idle()
  return run.id
}

/** What a run says, event by event. */
export const eventsOf = (ledger: Ledger, runId: RunId): Promise<readonly RuntimeEvent[]> =>
  Array.fromAsync(ledger.read(runId))

/** The verdict on the store around its runs. */
export async function storeVerdict(ledger: Ledger): Promise<StoreVerdict> {
  const verdict = (await Array.fromAsync(verifyLedger(ledger))).at(-1)
  if (verdict?.scope !== 'store') throw new Error('The last verdict is not that of the store.')
  return verdict
}

/** A run that waits for a person. */
export interface SuspendedRun {
  readonly runtime: Runtime
  readonly run: {
    readonly approve: (toolCallId: string, options: { readonly by: string }) => Promise<boolean>
  }
  readonly pendingCall: string
}

/** A runtime of its own for runs that wait. */
export function finderRuntime(ledger: Ledger): Runtime {
  const model = scriptedModel([{ text: 'Found.', usage: {} }])
  const look = asking('x')
  const agent = defineAgent({ name: 'finder', instructions: 'Look.', model, tools: [look] })
  return createRuntime({ ledger, agents: [agent], host: { clock: manualClock() } })
}

/** The run again, in a runtime of its own, with the call that it waits for. */
export async function suspended(ledger: Ledger, runId: RunId): Promise<SuspendedRun> {
  const runtime = finderRuntime(ledger)
  for await (const { runId: found, pendingApprovals } of runtime.suspended()) {
    if (found !== runId) continue
    const run = {
      approve: (toolCallId: string, { by }: { by: string }) =>
        ledger.put(runId, {
          key: `approve ${toolCallId}`,
          command: { type: 'approve', toolCallId, by },
          at: 1,
        }),
    }
    return { runtime, run, pendingCall: pendingApprovals[0]?.toolCallId ?? '' }
  }
  throw new Error('The run does not wait.')
}
