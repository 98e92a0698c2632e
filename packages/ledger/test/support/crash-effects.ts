import type { Model, ModelRequest } from '@tallystick/core'
import {
  scriptedModel,
  testTool,
  type ScriptedReply,
  type TestTool,
  type TestToolOptions,
} from '@tallystick/testkit'
import { concatMap, dematerialize, materialize, Observable } from 'rxjs'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import type { Cross } from './crash-boundaries.ts'
import type { World } from './crash-world.ts'

/** What effects of a process can be cut off at, and what they change. */
export interface Stage {
  readonly world: World
  readonly cross: Cross
}

/** More calls than one process makes of one model. */
const maxCalls = 60

/** A model whose every reply follows from the request alone, so that any process can continue with it. */
export function stagedModel(
  { world, cross }: Stage,
  reply: (request: ModelRequest) => ScriptedReply,
  modelId = 'scripted-1',
): Model {
  const inner = scriptedModel(
    Array.from({ length: maxCalls }, () => reply),
    modelId,
  )
  return {
    ...inner,
    stream: (request, context) =>
      new Observable((subscriber) => {
        cross('model: to be asked')
        world.note({ what: 'asked', name: modelId })
        cross('model: asked')
        return slowly(inner.stream(request, context)).subscribe({
          next(signal) {
            cross(`model: before ${signal.type}`)
            subscriber.next(signal)
          },
          error(error) {
            cross('model: before its failure')
            subscriber.error(error)
          },
          complete() {
            subscriber.complete()
            cross('model: complete')
          },
        })
      }),
  }
}

/** The model with each of its pieces in pieces of five characters, as many as arrive at once from a wire. */
export function inSmallPieces(model: Model): Model {
  return { ...model, stream: (request, context) => model.stream(request, context).pipe(concatMap(smaller)) }
}

function smaller(signal: ModelSignal): readonly ModelSignal[] {
  if (!('text' in signal)) return [signal]
  return Array.from({ length: Math.ceil(signal.text.length / 5) }, (_, index) => {
    return { ...signal, text: signal.text.slice(5 * index, 5 * index + 5) }
  })
}

/** Lets everything else come first that is due. */
function nextTurn<T>(value: T): Promise<T> {
  return new Promise((resolve) => setImmediate(() => resolve(value)))
}

/** As from a wire: what is reported comes piece by piece, and other things happen in between. */
function slowly<T>(reports: Observable<T>): Observable<T> {
  return reports.pipe(
    materialize(),
    concatMap((report) => nextTurn(report)),
    dematerialize(),
  )
}

/** A tool that notes in the world when it begins and when it is done, and can be cut off on every side of that. */
export function stagedTool({ world, cross }: Stage, options: Omit<TestToolOptions, 'run'>): TestTool {
  const { name, effect = 'read', recovery = effect === 'read' ? 'rerun' : 'report' } = options
  const { check, reconcile } = options
  const mayRepeat = recovery === 'rerun' || recovery === 'reconcile'
  return testTool({
    ...options,
    async check(input) {
      cross(`${name}: before its check`)
      return (await check?.(input)) ?? { kind: 'run' }
    },
    async run(call) {
      cross(`${name}: before it executes`)
      const isHarmless = effect === 'read' && recovery === 'rerun' && call.attempt === 1
      world.noteCall('begun', name, call, { mayRepeat, isHarmless })
      cross(`${name}: in the middle`)
      await nextTurn(undefined)
      world.noteCall('done', name, call)
      cross(`${name}: done, its result not reported`)
      return `${name} is done.`
    },
    ...(reconcile && {
      async reconcile(call) {
        cross(`${name}: before it is reconciled`)
        const finding = await reconcile(call)
        world.noteCall('reconciled', name, call)
        cross(`${name}: reconciled, not reported`)
        return finding
      },
    }),
  })
}

/** What a model says at each turn, counted by the replies that it is shown. */
export function byTurn(replies: readonly ScriptedReply[]): (request: ModelRequest) => ScriptedReply {
  return ({ messages }) => {
    const turn = messages.filter(({ role }) => role === 'assistant').length
    return replies[turn] ?? { text: 'There is nothing left to say.' }
  }
}
