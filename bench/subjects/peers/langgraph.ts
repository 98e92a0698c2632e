import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager'
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessageChunk, ToolMessage, type BaseMessage } from '@langchain/core/messages'
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs'
import { tool } from '@langchain/core/tools'
import { MemorySaver, type BaseCheckpointSaver } from '@langchain/langgraph'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { z } from 'zod'
import { instructions, look, question, toolDescription, toolName, usage, type Script } from '../script.ts'
import { replies, type OpenedSubject, type Place, type Subject } from '../subject.ts'

export const langgraph: Subject = langgraphOn(async () => undefined)
export const langgraphMemory: Subject = langgraphOn(async () => ({ saver: new MemorySaver() }))
export const langgraphSqlite: Subject = langgraphOn(async ({ folder }) => {
  const saver = SqliteSaver.fromConnString(join(folder, 'checkpoints.db'))
  return { saver, close: async () => void saver.db.close() }
})
export const langgraphPostgres: Subject = langgraphOn(async ({ postgres = '' }) => {
  const saver = PostgresSaver.fromConnString(postgres)
  await saver.setup()
  return { saver, close: () => saver.end() }
})

interface Checkpoints {
  readonly saver: BaseCheckpointSaver
  readonly close?: () => Promise<void>
}

function langgraphOn(openCheckpoints: (place: Place) => Promise<Checkpoints | undefined>): Subject {
  return {
    async open(script, place): Promise<OpenedSubject> {
      const checkpoints = await openCheckpoints(place)
      const agent = createReactAgent({
        llm: new ScriptedChatModel(script),
        tools: [
          tool((input: { at: number }) => look(script, input), {
            name: toolName,
            description: toolDescription,
            schema: z.object({ at: z.number() }),
          }),
        ],
        prompt: instructions,
        ...(checkpoints && { checkpointer: checkpoints.saver }),
      })
      return {
        async run(conversation) {
          const input = { messages: [{ role: 'user', content: question }] }
          const streamed = await agent.stream(input, {
            streamMode: 'messages',
            recursionLimit: 2 * script.maxTurns + 10,
            configurable: { thread_id: conversation ?? randomUUID() },
          })
          let [text, replies, results] = ['', 0, 0]
          for await (const [message] of streamed) {
            if (message instanceof ToolMessage) results++
            else if (message instanceof AIMessageChunk) {
              text += message.content as string
              if (message.usage_metadata) replies++
            }
          }
          return { text, replies, results }
        },
        async close() {
          await checkpoints?.close?.()
        },
      }
    },
  }
}

/** A chat model of its own, as the documentation describes: it streams chunks and reports each to the callbacks. */
class ScriptedChatModel extends BaseChatModel {
  readonly #replies: ReturnType<typeof replies>
  constructor(script: Script) {
    super({})
    this.#replies = replies(script)
  }

  override _llmType(): string {
    return 'scripted'
  }

  override bindTools(): this {
    return this
  }

  override _generate(): Promise<ChatResult> {
    throw new Error('Only streams are measured.')
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: this['ParsedCallOptions'],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { deltas, calls } = this.#replies.next()
    // Messages of one id would replace each other in the state.
    const id = randomUUID()
    const chunk = async (fields: object, text = ''): Promise<ChatGenerationChunk> => {
      const message = new AIMessageChunk({ content: text, id, ...fields })
      const made = new ChatGenerationChunk({ message, text })
      await runManager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk: made })
      return made
    }
    for (const content of deltas) yield await chunk({}, content)
    for (const [index, { id: callId, input }] of calls.entries()) {
      const call = { type: 'tool_call_chunk', index, id: callId, name: toolName, args: JSON.stringify(input) }
      yield await chunk({ tool_call_chunks: [call] })
    }
    const { inputTokens, outputTokens } = usage
    yield await chunk({
      usage_metadata: {
        input_tokens: inputTokens,
        output_tokens: outputTokens,
        total_tokens: inputTokens + outputTokens,
      },
    })
  }
}
