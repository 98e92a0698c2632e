import type { Message, ModelRequest } from '@tallystick/core'
import type { AssistantPart, JsonObject } from '@tallystick/core/vocabulary'
import { checkModel, checkAbility, type ModelContractCase, require, requireEqual } from './case.ts'
import {
  callModel,
  listHardHistories,
  makeCallId,
  playOnStage,
  plainRequest,
  readEnd,
  replying,
  replyWithCall,
  spokenReply,
  toolRequest,
} from './http-harness.ts'

function freezeDeeply<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  Object.values(value).forEach(freezeDeeply)
  return Object.freeze(value)
}

const oddNames = ['files/read', 'files.read', 'get_weather', `${'long_'.repeat(30)}name`, '날씨']

/** Schemas of answers: one that any vendor takes, and those that only some do. */
const answerSchemas: readonly JsonObject[] = [
  { type: 'object', properties: { asked_for: { type: 'string' } }, required: ['asked_for'] },
  { type: 'object', properties: { asked_for: { type: 'object', additionalProperties: { type: 'number' } } } },
  { type: 'array', items: { type: 'object', properties: { asked_for: { type: 'string' } } } },
]

export const requestCases: readonly ModelContractCase[] = [
  checkModel('changes nothing of the request that it is given', async (harness) => {
    await playOnStage(harness, [replying(spokenReply)], async (stage) => {
      const request = freezeDeeply(structuredClone(toolRequest))
      readEnd(await callModel(stage.model, request))
      requireEqual(request, toolRequest, 'The request after the call')
    })
  }),
  checkModel('sends any history that a run can come to, by the rules of its vendor', async (harness) => {
    await playOnStage(harness, [replying(spokenReply)], async (stage) => {
      for (const [name, messages] of listHardHistories(stage.model)) {
        const { failure } = await callModel(stage.model, freezeDeeply({ ...plainRequest, messages }))
        require(failure === undefined, `a history with ${name} is sent: ${failure?.message}`)
        requireEqual(
          harness.brokenRules?.(stage.bodies.at(-1)) ?? [],
          [],
          `The rules that a history with ${name} breaks`,
        )
      }
    })
  }),
  checkModel('sends a reply back with its calls, and their results after it', async (harness) => {
    const reply = harness.lacks?.includes('reasoning')
      ? replyWithCall
      : { ...replyWithCall, reasoning: ['hm'] }
    await playOnStage(harness, [replying(reply), replying(spokenReply)], async (stage) => {
      const { parts, stopReason } = readEnd(await callModel(stage.model, toolRequest))
      let ordinal = 0
      const owned = parts.map((given): AssistantPart => {
        const { part: _, ...rest } = given
        return rest.type === 'tool_call' ? { ...rest, toolCallId: makeCallId(++ordinal) } : rest
      })
      const results = owned
        .filter((part) => part.type === 'tool_call')
        .map(({ toolCallId, name }) => {
          const content = [{ type: 'text' as const, text: `result of ${toolCallId.at(-1)}` }]
          return { toolCallId, name, outcome: 'success' as const, content }
        })
      const messages: readonly Message[] = [
        ...toolRequest.messages,
        { role: 'assistant', parts: owned, model: stage.model, stopReason, partial: false },
        { role: 'tool', results },
      ]
      readEnd(await callModel(stage.model, freezeDeeply({ ...toolRequest, messages })))
      const sent = JSON.stringify(stage.bodies[1])
      const inOrder = ['Let me look.', 'Seoul', 'Busan', 'result of 1', 'result of 2', 'result of 3']
      const places = inOrder.map((words) => sent.indexOf(words))
      require(places.every(
        (place, at) => place > (places[at - 1] ?? -1),
      ), 'the next request holds the words, the calls and their results, in order')
      requireEqual(harness.brokenRules?.(stage.bodies[1]) ?? [], [], 'The rules that the next request breaks')
    })
  }),
  checkAbility(
    'names',
    'offers tools of any name, and reports calls under the names that they have here',
    async (harness) => {
      const request: ModelRequest = {
        ...plainRequest,
        tools: oddNames.map((name) => ({ name, description: 'Does it.', inputSchema: { type: 'object' } })),
      }
      let offered: readonly string[] = []
      const scene = {
        type: 'reply' as const,
        reply: (toolNames: readonly string[]) => {
          offered = toolNames
          const calls = toolNames.map((name, place) => ({ id: `call_${place}`, name, input: {} }))
          return { ...replyWithCall, calls }
        },
      }
      await playOnStage(harness, [scene], async ({ model }) => {
        const { parts } = readEnd(await callModel(model, request))
        requireEqual(new Set(offered).size, oddNames.length, 'The number of names on the wire')
        const called = parts.flatMap((part) => (part.type === 'tool_call' ? [part.name] : []))
        requireEqual(called.toSorted(), oddNames.toSorted(), 'The names that calls come back under')
      })
    },
  ),
  checkModel('says so when no tool may be called', async (harness) => {
    await playOnStage(harness, [replying(spokenReply)], async (stage) => {
      readEnd(await callModel(stage.model, { ...toolRequest, toolChoice: { type: 'none' } }))
      readEnd(await callModel(stage.model, toolRequest))
      const [forbidden, allowed] = stage.bodies.map((body) => JSON.stringify(body))
      require(forbidden !== allowed, 'a request that forbids tools is another than one that allows them')
    })
  }),
  checkModel(
    'shows the schema of the answer, in the vendor’s own way or in the instructions',
    async (harness) => {
      for (const outputSchema of answerSchemas) {
        for (const asked of [plainRequest, toolRequest]) {
          await playOnStage(harness, [replying(spokenReply)], async (stage) => {
            readEnd(await callModel(stage.model, { ...asked, outputSchema }))
            const sent = JSON.stringify(stage.bodies[0])
            require(sent.includes(
              'asked_for',
            ), `the request holds the schema ${JSON.stringify(outputSchema)}`)
          })
        }
      }
    },
  ),
]
