import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { simulateReadableStream } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { toolName, usage, type Script, type ScriptedReply } from '../script.ts'
import { replies } from '../subject.ts'

/** The script as a model of the AI SDK, which Mastra takes, too: its mock model and its simulated stream, without delays. */
export function languageModel(script: Script): LanguageModelV4 {
  const { next } = replies(script)
  const made: LanguageModelV4 = new MockLanguageModelV4({
    provider: 'scripted',
    modelId: 'scripted-1',
    async doStream() {
      // The mock keeps every request that it was sent, which a model does not.
      ;(made as MockLanguageModelV4).doStreamCalls = []
      const chunks = [...partsOf(next())]
      return {
        stream: simulateReadableStream({ chunks, initialDelayInMs: null, chunkDelayInMs: null }),
      }
    },
  })
  return made
}

function* partsOf({ deltas, calls }: ScriptedReply): Generator<LanguageModelV4StreamPart> {
  yield { type: 'stream-start', warnings: [] }
  yield { type: 'text-start', id: 'text' }
  for (const delta of deltas) yield { type: 'text-delta', id: 'text', delta }
  yield { type: 'text-end', id: 'text' }
  for (const { id, input } of calls) {
    const text = JSON.stringify(input)
    yield { type: 'tool-input-start', id, toolName }
    yield { type: 'tool-input-delta', id, delta: text }
    yield { type: 'tool-input-end', id }
    yield { type: 'tool-call', toolCallId: id, toolName, input: text }
  }
  const { inputTokens, outputTokens } = usage
  yield {
    type: 'finish',
    finishReason: { unified: calls.length > 0 ? 'tool-calls' : 'stop', raw: undefined },
    usage: {
      inputTokens: { total: inputTokens, noCache: inputTokens, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: outputTokens, text: outputTokens, reasoning: 0 },
    },
  }
}
