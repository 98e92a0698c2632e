import type { ModelSignal } from '@tallystick/core/vocabulary'
import {
  type ContractReply,
  checkModel,
  checkAbility,
  type ModelContractCase,
  type ModelHarness,
  require,
  requireEqual,
} from './case.ts'
import {
  callModel,
  type CallOutcome,
  playOnStage,
  plainRequest,
  readEnd,
  replying,
  replyWithCall,
  spokenReply,
  toolRequest,
} from './http-harness.ts'

const thinkingReply: ContractReply = { ...replyWithCall, reasoning: ['The user asks ', 'for two things.'] }

function callForReply(
  harness: ModelHarness,
  reply: ContractReply,
  pieceBytes?: number,
): Promise<CallOutcome> {
  const scene = replying(reply, pieceBytes === undefined ? {} : { pieceBytes })
  return playOnStage(harness, [scene], ({ model }) => callModel(model, toolRequest))
}

function deltas(
  signals: readonly ModelSignal[],
  type: 'model_text' | 'model_reasoning',
): Record<number, string> {
  const texts: Record<number, string> = {}
  for (const signal of signals)
    if (signal.type === type) texts[signal.part] = (texts[signal.part] ?? '') + signal.text
  return texts
}

function isPlain(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object') return false
  if (Array.isArray(value)) return value.every(isPlain)
  return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isPlain)
}

export const replyCases: readonly ModelContractCase[] = [
  checkModel(
    'reports at most one start, then what streams, then exactly one end, and completes',
    async (harness) => {
      const outcome = await callForReply(harness, replyWithCall)
      readEnd(outcome)
      const types = outcome.signals.map(({ type }) => type)
      require(types.filter((type) => type === 'model_started').length <= 1, 'a reply starts at most once')
      require(types.indexOf('model_started') <= 0, 'nothing is reported before the start')
      requireEqual(types.filter((type) => type === 'model_finished').length, 1, 'The number of ends')
    },
  ),
  checkModel('gives each part of text what its deltas said', async (harness) => {
    const outcome = await callForReply(harness, spokenReply)
    const { parts } = readEnd(outcome)
    requireEqual(
      Object.values(deltas(outcome.signals, 'model_text')).join(''),
      spokenReply.text?.join(''),
      'What was said',
    )
    const spoken = parts.flatMap((part) => (part.type === 'text' ? [[part.part, part.text]] : []))
    requireEqual(Object.fromEntries(spoken), deltas(outcome.signals, 'model_text'), 'The text of the parts')
  }),
  checkAbility('reasoning', 'gives each part of reasoning what its deltas said', async (harness) => {
    const outcome = await callForReply(harness, thinkingReply)
    const shown = deltas(outcome.signals, 'model_reasoning')
    requireEqual(Object.values(shown).join(''), thinkingReply.reasoning?.join(''), 'What was thought')
    const thoughts = readEnd(outcome).parts.flatMap((part) =>
      part.type === 'reasoning' ? [[part.part, part.text]] : [],
    )
    requireEqual(Object.fromEntries(thoughts), shown, 'The reasoning of the parts')
  }),
  checkModel(
    'requests each call once and whole, in the order of the reply, and keeps it among the parts',
    async (harness) => {
      const outcome = await callForReply(harness, replyWithCall)
      const requested = outcome.signals.flatMap((signal) =>
        signal.type === 'model_tool_request' ? [{ part: signal.part, ...signal.call }] : [],
      )
      requireEqual(
        requested.map(({ name, input }) => ({ name, input })),
        replyWithCall.calls?.map(({ name, input }) => ({ name, input })),
        'The calls',
      )
      const kept = readEnd(outcome).parts.filter((part) => part.type === 'tool_call')
      requireEqual(kept, requested, 'The calls among the parts')
      const typed: Record<number, string> = {}
      for (const signal of outcome.signals) {
        if (signal.type !== 'model_tool_input') continue
        requireEqual(
          signal.name,
          requested.find(({ part }) => part === signal.part)?.name,
          'The name of a call',
        )
        typed[signal.part] = (typed[signal.part] ?? '') + signal.text
      }
      for (const { part, input } of requested) {
        const text = typed[part] ?? ''
        if (text.trim() !== '')
          requireEqual(JSON.parse(text), input, 'The input that was shown piece by piece')
      }
    },
  ),
  checkModel('gives each part a place of its own', async (harness) => {
    const outcome = await callForReply(harness, thinkingReply)
    const places = readEnd(outcome).parts.map(({ part }) => part)
    require(places.every(
      (place, at) => at === 0 || place > places[at - 1]!,
    ), 'parts are in the order of their places, each at one of its own')
  }),
  checkModel('says in one vocabulary why the reply ended', async (harness) => {
    const cut: ContractReply = { ...spokenReply, stop: 'max_tokens' }
    for (const reply of [spokenReply, replyWithCall, cut]) {
      requireEqual(readEnd(await callForReply(harness, reply)).stopReason, reply.stop, 'The stop reason')
    }
  }),
  checkModel('reports the tokens of the whole call', async (harness) => {
    const { signals } = await callForReply(harness, replyWithCall)
    const last = signals.findLast((signal) => signal.type === 'model_usage')?.usage
    const { inputTokens, outputTokens } = last ?? {}
    requireEqual({ inputTokens, outputTokens }, replyWithCall.usage, 'The usage')
  }),
  checkModel('reports nothing but what JSON can carry', async (harness) => {
    const { signals } = await callForReply(harness, thinkingReply)
    requireEqual(JSON.parse(JSON.stringify(signals)), signals, 'The signals, written and read')
    require(signals.every((signal) =>
      isPlain(signal),
    ), 'signals are plain data, without undefined, classes and functions')
  }),
  checkAbility('connection', 'reports the same however the bytes were cut on their way', async (harness) => {
    const whole = await callForReply(harness, thinkingReply)
    for (const pieceBytes of [1, 7, 64, 100_000]) {
      const { signals } = await callForReply(harness, thinkingReply, pieceBytes)
      requireEqual(signals, whole.signals, `The signals of bytes in pieces of ${pieceBytes}`)
    }
  }),
  checkModel('makes one request a subscription, and the same one for the same', async (harness) => {
    await playOnStage(harness, [replying(spokenReply)], async (stage) => {
      const { model } = stage
      await callModel(model, plainRequest)
      await callModel(model, plainRequest)
      requireEqual(stage.bodies.length, 2, 'The number of requests of two calls')
      requireEqual(stage.bodies[1], stage.bodies[0], 'The second request for the same')
    })
  }),
  checkModel('keeps calls apart that stream at the same time', async (harness) => {
    const other: ContractReply = { ...spokenReply, text: ['Another ', 'reply.'] }
    await playOnStage(harness, [replying(spokenReply), replying(other)], async ({ model }) => {
      const both = await Promise.all([callModel(model, plainRequest), callModel(model, plainRequest)])
      const texts = both.map((outcome) =>
        readEnd(outcome)
          .parts.map((part) => ('text' in part ? part.text : ''))
          .join(''),
      )
      const missing = [spokenReply, other].filter(({ text = [] }) => !texts.includes(text.join('')))
      requireEqual(missing, [], 'The texts that two calls at the same time mixed up')
    })
  }),
]
