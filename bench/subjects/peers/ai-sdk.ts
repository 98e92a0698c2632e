import { isStepCount, tool, ToolLoopAgent, type ModelMessage } from 'ai'
import { z } from 'zod'
import { instructions, look, question, toolDescription } from '../script.ts'
import type { Subject } from '../subject.ts'
import { languageModel } from './language-model.ts'

/** The AI SDK. It has no store: its callers keep the messages of a conversation. */
export const aiSdk: Subject = {
  async open(script) {
    const agent = new ToolLoopAgent({
      model: languageModel(script),
      instructions,
      tools: {
        look: tool({
          description: toolDescription,
          inputSchema: z.object({ at: z.number() }),
          execute: (input) => look(script, input),
        }),
      },
      stopWhen: isStepCount(script.maxTurns + 1),
    })
    const conversations = new Map<string, ModelMessage[]>()
    return {
      async run(conversation) {
        const messages: ModelMessage[] = conversations.get(conversation ?? '') ?? []
        messages.push({ role: 'user', content: question })
        const streamed = await agent.stream({ messages })
        let [text, replies, results] = ['', 0, 0]
        for await (const part of streamed.fullStream) {
          if (part.type === 'text-delta') text += part.text
          else if (part.type === 'finish-step') replies++
          else if (part.type === 'tool-result') results++
          else if (part.type === 'error') throw part.error
        }
        if (conversation !== undefined) {
          messages.push(...(await streamed.responseMessages))
          conversations.set(conversation, messages)
        }
        return { text, replies, results }
      },
      async close() {},
    }
  },
}
