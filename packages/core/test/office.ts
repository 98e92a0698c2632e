import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type Ledger,
  type ModelRequest,
  type Runtime,
  type RuntimeEvent,
} from '@tallystick/core'
import type { InboxEntry } from '@tallystick/core/vocabulary'
import { manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { checkedRun, ofType, recorded } from './stage.ts'

type Step = Parameters<typeof scriptedModel>[0][number]

/** A model that asks for calls, and answers when it has their results. */
export function asking(names: readonly string[], text: string, until?: Promise<unknown>) {
  const toolCalls = names.map((name) => ({ name, input: { task: `Do ${name}.` } }))
  const step: Step = ({ messages }: ModelRequest) => (messages.length === 1 ? { toolCalls } : { text, until })
  return scriptedModel(Array.from({ length: 9 }, () => step))
}

/** What is different in one process. */
export interface ProcessOptions {
  readonly view?: Ledger
  readonly pays?: () => Promise<string>
  readonly looks?: () => Promise<string>
  readonly managerAnswers?: Promise<unknown>
  readonly bossAnswers?: Promise<unknown>
  /** The one agent that the process knows; all of them if not given. */
  readonly only?: string
}

/** A process of the office, and the errors that its host got. */
export interface Process {
  readonly runtime: Runtime
  readonly boss: Agent
  readonly reported: readonly unknown[]
}

/**
 * An office in which a boss has a manager work, who has clerks work, who ask before they pay. The boss may look at
 * something beside that.
 */
export function office({ desks = 1, isLooking = false, context = undefined as object | undefined } = {}) {
  const ledger = memoryLedger()
  const clock = manualClock()
  const settled = <T>(promise: Promise<T>): Promise<T> => waitUntilSettled(clock, promise)
  const done: string[] = []
  const working = (name: string, effect: 'read' | 'write', work: () => Promise<string>) =>
    testTool({
      ...{ name, effect, check: () => ({ kind: effect === 'write' ? 'ask' : 'run' }) },
      run: () => {
        done.push(name)
        return work()
      },
    })
  const open = (options: ProcessOptions = {}): Process => {
    const { view = ledger, only, pays = () => Promise.resolve('paid'), managerAnswers, bossAnswers } = options
    const { looks = () => Promise.resolve('seen') } = options
    const works = { instructions: 'Work.', description: 'Works.' }
    const clerk = defineAgent({
      ...{ ...works, name: 'clerk', model: asking(['pay'], 'Paid.') },
      tools: [working('pay', 'write', pays)],
    })
    const clerks = Array.from({ length: desks }, () => 'clerk')
    const manager = defineAgent({
      ...{ ...works, name: 'manager', model: asking(clerks, 'Managed.', managerAnswers) },
      tools: [agentTool(clerk, { effect: 'read' })],
    })
    const boss = defineAgent({
      ...{ ...works, name: 'boss' },
      model: asking(isLooking ? ['manager', 'look'] : ['manager'], 'All done.', bossAnswers),
      tools: [agentTool(manager, { effect: 'read' }), working('look', 'read', looks)],
    })
    const agents = [boss, manager, clerk].filter(({ name }) => only === undefined || name === only)
    const reported: unknown[] = []
    const report = (error: unknown): number => reported.push(error)
    return { boss, reported, runtime: createRuntime({ ledger: view, agents, host: { clock, report } }) }
  }
  /** Waits for what another run records, without letting time pass. */
  const until = async (isSo: () => Promise<boolean>): Promise<void> => {
    for (let turn = 0; turn < 2_000; turn++) if (await isSo()) return
    throw new Error('It was never so.')
  }
  /** Plays until all clerks wait for their approvals, and all who wait for them are on record as waiting. */
  const begin = async (options?: ProcessOptions) => {
    const { runtime, boss } = open(options)
    const run = runtime.run(boss, 'Go.', { context })
    const stopped = run.result.catch(() => {})
    if (options?.looks === undefined) await settled(stopped)
    const questions = async () => await Array.fromAsync(ledger.find({ types: ['approval_requested'] }))
    await until(async () => (await questions()).length === desks)
    await until(async () => (await Array.fromAsync(ledger.find({ types: ['tool_deferred'] }))).length > 0)
    const [started] = ofType(await recorded(ledger, run.id), 'tool_started')
    const asked = (await questions()).map(({ runId, toolCallId = '' }) => ({ runId, toolCallId }))
    return { runtime, rootId: run.id, managerId: started!.child!, questions: asked }
  }
  const approve = async ({ runtime }: Process, { runId, toolCallId }: Question) => {
    const run = runtime.resume(runId, { context })
    await settled(run.result)
    return { run, approved: run.approve(toolCallId, { by: 'ada' }) }
  }
  const lastOf = async (runId: string) => checkedRun(await recorded(ledger, runId)).at(-1)
  const epochOf = async (runId: string) => (await ledger.head(runId as never))?.epoch
  const times = (name: string): number => done.filter((each) => each === name).length
  return { ledger, clock, settled, until, open, begin, approve, lastOf, epochOf, times }
}

/** An approval that a clerk waits for. */
export interface Question {
  readonly runId: string
  readonly toolCallId: string
}

/** A ledger in which something happens just before the end of a child run is put into the inbox of its parent. */
export function beforeReport(ledger: Ledger, meanwhile: () => Promise<unknown>): Ledger {
  let isFirst = true
  return {
    ...ledger,
    async put(runId, entry) {
      if (entry.key.startsWith('child ') && isFirst) {
        isFirst = false
        await meanwhile()
      }
      return await ledger.put(runId, entry)
    },
  }
}

/** Whether a run has asked its model a second time: with the results of its calls. */
export async function asksAgain(ledger: Ledger, runId: string): Promise<boolean> {
  return ofType(await recorded(ledger, runId), 'model_call_started').length > 1
}

/** A ledger whose process dies at an append: `isEnd` is given each event, and whether it is of the first run of the process. */
export function dyingAt(ledger: Ledger, isEnd: (event: RuntimeEvent, isOfFirst: boolean) => boolean): Ledger {
  let first: string | undefined
  let isDead = false
  return {
    ...ledger,
    async append(runId, expected, events, options) {
      first ??= runId
      isDead ||= events.some((event) => isEnd(event, runId === first))
      if (isDead) throw new Error('The process died here.')
      return await ledger.append(runId, expected, events, options)
    },
  }
}

/** A ledger, and what a process has put into inboxes through it, in order. */
export function listening(ledger: Ledger): { readonly ledger: Ledger; readonly put: readonly InboxEntry[] } {
  const put: InboxEntry[] = []
  return {
    put,
    ledger: {
      ...ledger,
      async put(runId, entry) {
        put.push(entry)
        return await ledger.put(runId, entry)
      },
    },
  }
}
