import { join } from 'node:path'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type Ledger,
  type Model,
} from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { verifyLedger } from '@tallystick/ledger'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { defineTool } from '@tallystick/tools'
import { Observable, type Subscriber } from 'rxjs'
import { z } from 'zod'
import {
  instructions,
  look,
  question,
  toolDescription,
  toolName,
  usage,
  type Script,
  type ScriptedReply,
  type Seen,
} from './script.ts'
import { replies, type Place, type Subject } from './subject.ts'

export const tallystickMemory: Subject = tallystickOn(() => memoryLedger())
export const tallystickSqlite: Subject = tallystickOn(({ folder }) => sqliteLedger(join(folder, 'runs.db')))
export const tallystickPostgres: Subject = tallystickOn(({ postgres = '' }) =>
  postgresLedger({ connectionString: postgres }),
)

function tallystickOn(openLedger: (place: Place) => Ledger): Subject {
  return {
    async open(script, place) {
      const ledger = openLedger(place)
      const agent = agentOf(script, scriptedModel(script))
      const runtime = createRuntime({ ledger, agents: [agent] })
      return {
        async run(sessionId) {
          const session = sessionId === undefined ? undefined : runtime.session(sessionId)
          return await seenOf(session ? await session.run(agent, question) : runtime.run(agent, question))
        },
        async verify() {
          for await (const verdict of verifyLedger(ledger)) {
            if (!verdict.ok) throw new Error(`The ledger does not verify: ${JSON.stringify(verdict)}`)
          }
        },
        close: () => ledger.close(),
      }
    },
  }
}

/** The agent of all cases, with a model. */
export function agentOf(script: Script, model: Model): Agent {
  const tool = defineTool({
    name: toolName,
    description: toolDescription,
    input: z.object({ at: z.number() }),
    effect: 'read',
    execute: (input) => look(script, input),
  })
  const limits = {
    maxTurns: script.maxTurns + 1,
    // As the others: no bound on the calls that run at once.
    maxConcurrency: Math.max(8, script.maxCalls),
  }
  return defineAgent({ name: 'looker', instructions, model, tools: [tool], limits })
}

/** What a reader of the events of a run gets. */
export async function seenOf(run: ReturnType<ReturnType<typeof createRuntime>['run']>): Promise<Seen> {
  let [text, replied, results] = ['', 0, 0]
  const reader = run.events$.subscribe((event) => {
    if (event.type === 'assistant_text_delta') text += event.text
    else if (event.type === 'assistant_message_finished') replied++
    else if (event.type === 'tool_result' && event.outcome === 'success') results++
  })
  const { reason } = await run.result
  reader.unsubscribe()
  if (reason !== 'answered') throw new Error(`The run ended as ${reason}.`)
  return { text, replies: replied, results }
}

/** A model that plays the script, with one turn of promises between signals, as the models of the others have. */
export function scriptedModel(script: Script): Model {
  const { next } = replies(script)
  return {
    ...{ provider: 'scripted', api: 'script', modelId: 'scripted-1' },
    stream: () => new Observable((subscriber) => void play(next(), subscriber)),
  }
}

async function play({ deltas, calls }: ScriptedReply, subscriber: Subscriber<ModelSignal>): Promise<void> {
  subscriber.next({ type: 'model_started', providerMessageId: 'message' })
  for (const text of deltas) {
    await Promise.resolve()
    subscriber.next({ type: 'model_text', part: 0, text })
  }
  const requested = calls.map(({ id, input }, index) => {
    const call = { type: 'tool_call', providerCallId: id, name: toolName, input: { ...input } } as const
    const part = index + 1
    subscriber.next({ type: 'model_tool_input', part, name: toolName, text: JSON.stringify(input) })
    subscriber.next({ type: 'model_tool_request', part, call })
    return { part, ...call }
  })
  subscriber.next({ type: 'model_usage', usage })
  const stopReason = calls.length > 0 ? 'tool_use' : 'end'
  const parts = [{ part: 0, type: 'text', text: deltas.join('') } as const, ...requested]
  subscriber.next({ type: 'model_finished', stopReason, parts })
  subscriber.complete()
}
