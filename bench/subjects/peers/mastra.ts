import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { Mastra } from '@mastra/core'
import { Agent } from '@mastra/core/agent'
import { noopLogger } from '@mastra/core/logger'
import { createTool } from '@mastra/core/tools'
import { LibSQLStore } from '@mastra/libsql'
import { Memory } from '@mastra/memory'
import { z } from 'zod'
import { instructions, look, question, toolDescription, toolName } from '../script.ts'
import type { Place, Subject } from '../subject.ts'
import { languageModel } from './language-model.ts'

export const mastra: Subject = mastraOn(() => undefined)
/** With its storage in a file, and its memory, which keeps the messages of threads there. */
export const mastraLibsql: Subject = mastraOn(
  ({ folder }) => new LibSQLStore({ id: 'bench', url: `file:${join(folder, 'mastra.db')}` }),
)

function mastraOn(openStorage: (place: Place) => LibSQLStore | undefined): Subject {
  return {
    async open(script, place) {
      const storage = openStorage(place)
      const tool = createTool({
        id: toolName,
        description: toolDescription,
        inputSchema: z.object({ at: z.number() }),
        execute: (input) => look(script, input),
      })
      const looker = new Agent({
        ...{ id: 'looker', name: 'looker', instructions },
        // The type of the model is of another copy of the same interface.
        model: languageModel(script) as never,
        tools: { [toolName]: tool },
        ...(storage && { memory: new Memory({ storage }) }),
      })
      const application = new Mastra({
        agents: { looker },
        logger: noopLogger,
        ...(storage && { storage }),
      })
      await storage?.init()
      const agent = application.getAgent('looker')
      return {
        async run(conversation) {
          const thread = conversation ?? randomUUID()
          const streamed = await agent.stream(question, {
            maxSteps: script.maxTurns + 1,
            toolCallConcurrency: Math.max(10, script.maxCalls),
            ...(storage && { memory: { thread, resource: 'bench' } }),
          })
          let [text, replies, results] = ['', 0, 0]
          for await (const chunk of streamed.fullStream) {
            if (chunk.type === 'text-delta') text += chunk.payload.text
            else if (chunk.type === 'step-finish') replies++
            else if (chunk.type === 'tool-result') results++
            else if (chunk.type === 'error') throw chunk.payload.error
          }
          return { text, replies, results }
        },
        async close() {
          await storage?.close?.()
        },
      }
    },
  }
}
