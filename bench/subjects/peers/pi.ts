import { Agent, type AgentMessage, type AgentTool, type StreamFn } from '@earendil-works/pi-agent-core'
import {
  createAssistantMessageEventStream,
  fauxProvider,
  Type,
  type AssistantMessage,
  type AssistantMessageEventStream,
} from '@earendil-works/pi-ai'
import { instructions, look, question, toolDescription, toolName, usage } from '../script.ts'
import { replies, type Subject } from '../subject.ts'
import type { ScriptedReply } from '../script.ts'

const model = fauxProvider().getModel()

/** pi with a stream function of its own; its faux provider estimates tokens over the whole history at each call. In memory. */
export const pi: Subject = {
  async open(script) {
    const { next } = replies(script)
    const streamFn: StreamFn = () => {
      const stream = createAssistantMessageEventStream()
      void play(next(), stream)
      return stream
    }
    const parameters = Type.Object({ at: Type.Number() })
    const tool: AgentTool<typeof parameters> = {
      ...{ name: toolName, label: toolName, description: toolDescription, parameters },
      async execute(_id, input) {
        return { content: [{ type: 'text', text: await look(script, input) }], details: {} }
      },
    }
    const conversations = new Map<string, AgentMessage[]>()
    return {
      async run(conversation) {
        const messages = conversations.get(conversation ?? '') ?? []
        const agent = new Agent({
          initialState: {
            ...{ systemPrompt: instructions, model, tools: [tool] },
            ...(messages.length > 0 && { messages }),
          },
          streamFn,
        })
        let [text, replied, results] = ['', 0, 0]
        agent.subscribe((event) => {
          if (event.type === 'message_update' && event.assistantMessageEvent.type === 'text_delta') {
            text += event.assistantMessageEvent.delta
          } else if (event.type === 'message_end' && event.message.role === 'assistant') replied++
          else if (event.type === 'tool_execution_end' && !event.isError) results++
        })
        await agent.prompt(question)
        if (agent.state.errorMessage !== undefined) throw new Error(agent.state.errorMessage)
        if (conversation !== undefined) conversations.set(conversation, agent.state.messages)
        return { text, replies: replied, results }
      },
      async close() {},
    }
  },
}

async function play({ deltas, calls }: ScriptedReply, stream: AssistantMessageEventStream): Promise<void> {
  const { inputTokens: input, outputTokens: output } = usage
  const partial: AssistantMessage = {
    ...{ role: 'assistant', content: [], api: model.api, provider: model.provider, model: model.id },
    usage: {
      ...{ input, output, cacheRead: 0, cacheWrite: 0, totalTokens: input + output },
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    },
    ...{ stopReason: calls.length > 0 ? 'toolUse' : 'stop', timestamp: Date.now() },
  }
  stream.push({ type: 'start', partial })
  const said = { type: 'text' as const, text: '' }
  partial.content.push(said)
  stream.push({ type: 'text_start', contentIndex: 0, partial })
  for (const delta of deltas) {
    await Promise.resolve()
    said.text += delta
    stream.push({ type: 'text_delta', contentIndex: 0, delta, partial })
  }
  stream.push({ type: 'text_end', contentIndex: 0, content: said.text, partial })
  for (const [index, { id, input: given }] of calls.entries()) {
    const toolCall = { type: 'toolCall' as const, id, name: toolName, arguments: { ...given } }
    partial.content.push(toolCall)
    const contentIndex = index + 1
    stream.push({ type: 'toolcall_start', contentIndex, partial })
    stream.push({ type: 'toolcall_delta', contentIndex, delta: JSON.stringify(given), partial })
    stream.push({ type: 'toolcall_end', contentIndex, toolCall, partial })
  }
  stream.push({ type: 'done', reason: partial.stopReason as 'stop' | 'toolUse', message: partial })
  stream.end(partial)
}
