import {
  agentTool,
  createRuntime,
  defineAgent,
  joinText,
  type Agent,
  type Ledger,
  type Model,
  type ModelRequest,
  type Rest,
  type RunId,
  type Runtime,
} from '@tallystick/core'
import { scriptedModel, testTool, type ScriptedReply, type TestTool } from '@tallystick/testkit'

/** The outside world: what tools really did, whichever process they ran in, and who waits for it. */
export class World {
  /** How often each call had its effect, by its idempotency key. */
  readonly effects: Map<string, number> = new Map()
  /** The calls that have begun, in order. */
  readonly begun: { readonly tool: string; readonly toolCallId: string; readonly runId: string }[] = []
  readonly rests: Rest[] = []
  /** The models asked to wait once that long, in milliseconds, before they answer. */
  refusals: number[] = []
  /** Runs after each effect of `pay`. */
  onPaid = (): void => {}
  /** Ends the calls of `ship`, which are under way until then. */
  readonly gate: PromiseWithResolvers<string> = Promise.withResolvers<string>()
  readonly #timerMs: number
  readonly #watchers = new Set<() => void>()

  constructor(timerMs: number) {
    this.#timerMs = timerMs
  }

  rested(rest: Rest): void {
    this.rests.push(rest)
    this.notify()
  }

  count(status: Rest['status'], runId?: RunId): number {
    return this.rests.filter((rest) => rest.status === status && (runId ?? rest.runId) === rest.runId).length
  }

  /** Resolves once that holds, which is looked at when something has happened. */
  async until(holds: () => boolean | Promise<boolean>): Promise<void> {
    for (;;) {
      let wake = (): void => {}
      const happened = new Promise<void>((resolve) => void (wake = resolve))
      this.#watchers.add(wake)
      try {
        if (await holds()) return
        await happened
      } finally {
        this.#watchers.delete(wake)
      }
    }
  }

  notify(): void {
    for (const watcher of this.#watchers) watcher()
  }

  /** A runtime as a process has it: nothing of it is shared with others but this world. */
  open(ledger: Ledger, version = 1): { readonly runtime: Runtime; readonly agent: Agent } {
    const tools = this.#makeTools()
    const about = { model: this.#makeModel(), instructions: `Do what you are told, version ${version}.` }
    const clerk = defineAgent({ ...about, name: 'clerk', description: 'Does it.', tools })
    const more = version > 1 ? [testTool({ name: 'added' })] : []
    const agent = defineAgent({ ...about, name: 'boss', tools: [...tools, agentTool(clerk), ...more] })
    return { agent, runtime: createRuntime({ ledger, agents: [agent], host: { report: () => {} } }) }
  }

  #makeTools(): readonly TestTool[] {
    const begin = (tool: string, run: { readonly toolCallId: string; readonly runId: string }): void => {
      this.begun.push({ tool, toolCallId: run.toolCallId, runId: run.runId })
      this.notify()
    }
    const act = (key: string): void => {
      this.effects.set(key, (this.effects.get(key) ?? 0) + 1)
      this.notify()
    }
    const pay = testTool({
      name: 'pay',
      effect: 'write',
      check: () => ({ kind: 'ask' }),
      run: (run) => {
        begin('pay', run)
        act(run.idempotencyKey)
        this.onPaid()
        return 'Paid.'
      },
    })
    const ship = testTool({
      name: 'ship',
      effect: 'write',
      recovery: 'reconcile',
      run: (run) => {
        begin('ship', run)
        act(run.idempotencyKey)
        return this.gate.promise
      },
      reconcile: ({ idempotencyKey }) =>
        Promise.resolve(
          this.effects.has(idempotencyKey)
            ? { state: 'done', outcome: 'success', content: [{ type: 'text', text: 'It was shipped.' }] }
            : { state: 'not_done' },
        ),
    })
    const deferring = (name: string, deadlineMs?: number): TestTool =>
      testTool({
        name,
        effect: 'write',
        run: (run, report) => {
          begin(name, run)
          act(run.idempotencyKey)
          report.defer(`job ${run.toolCallId}`, deadlineMs)
          return ''
        },
      })
    return [pay, ship, deferring('wait', this.#timerMs), deferring('order')]
  }

  /** Does one word of the task a turn: the request alone says how far the run is. */
  #makeModel(): Model {
    return {
      ...scriptedModel([]),
      stream: (request, context) => {
        const retryAfterMs = this.refusals.pop()
        const reply: ScriptedReply =
          retryAfterMs === undefined ? replyTo(request) : { fail: 'rate_limited', retryAfterMs }
        return scriptedModel([reply]).stream(request, context)
      },
    }
  }
}

/** The task that begins with this word lists what to do, such as `Do: pay ship`. */
const mark = 'Do:'

function replyTo({ messages }: ModelRequest): ScriptedReply {
  const told = messages.findLastIndex(
    (message) => message.role === 'user' && joinText(message.parts).startsWith(mark),
  )
  const task = messages[told]
  const words = task?.role === 'user' ? joinText(task.parts).slice(mark.length).trim().split(' ') : []
  const turn = messages.slice(told).filter(({ role }) => role === 'assistant').length
  const name = words[turn]
  if (name === undefined || name === '') return { text: 'All done.' }
  const input = name === 'clerk' ? { task: `${mark} pay` } : { turn }
  return { toolCalls: [{ name, input }] }
}
