import {
  Agent,
  MemorySession,
  run,
  setTracingDisabled,
  tool,
  type Model,
  type ModelResponse,
  type StreamEvent,
} from '@openai/agents'
import { z } from 'zod'
import { instructions, look, question, toolDescription, toolName, usage, type Script } from '../script.ts'
import { replies, type Subject } from '../subject.ts'

setTracingDisabled(true)

/** The OpenAI Agents SDK with a model of its `Model` interface; its own scripted model keeps a copy of every request. */
export const openaiAgents: Subject = {
  async open(script) {
    const agent = new Agent({
      name: 'looker',
      instructions,
      model: scriptedModel(script),
      tools: [
        tool({
          name: toolName,
          description: toolDescription,
          parameters: z.object({ at: z.number() }),
          execute: (input) => look(script, input),
        }),
      ],
    })
    const sessions = new Map<string, MemorySession>()
    const sessionOf = (conversation: string): MemorySession => {
      const session = sessions.get(conversation) ?? new MemorySession()
      sessions.set(conversation, session)
      return session
    }
    return {
      async run(conversation) {
        const maxTurns = script.maxTurns + 1
        const streamed = await run(agent, question, {
          ...{ stream: true as const, maxTurns },
          ...(conversation !== undefined && { session: sessionOf(conversation) }),
        })
        let [text, replies, results] = ['', 0, 0]
        for await (const event of streamed) {
          if (event.type === 'raw_model_stream_event') {
            if (event.data.type === 'output_text_delta') text += event.data.delta
            else if (event.data.type === 'response_done') replies++
          } else if (event.type === 'run_item_stream_event' && event.name === 'tool_output') results++
        }
        await streamed.completed
        return { text, replies, results }
      },
      async close() {},
    }
  },
}

function scriptedModel(script: Script): Model {
  const { next } = replies(script)
  return {
    getResponse(): Promise<ModelResponse> {
      throw new Error('Only streams are measured.')
    },
    async *getStreamedResponse(): AsyncGenerator<StreamEvent> {
      const { deltas, calls } = next()
      yield { type: 'response_started' }
      for (const delta of deltas) yield { type: 'output_text_delta', delta }
      const { inputTokens, outputTokens } = usage
      yield {
        type: 'response_done',
        response: {
          id: 'response',
          usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
          output: [
            {
              ...{ type: 'message', role: 'assistant', id: 'message', status: 'completed' },
              content: [{ type: 'output_text', text: deltas.join('') }],
            },
            ...calls.map(({ id, input }) => ({
              ...{ type: 'function_call', callId: id, name: toolName, status: 'completed' },
              arguments: JSON.stringify(input),
            })),
          ],
        },
      } as StreamEvent
    },
  }
}
