import type { OpenAI } from 'openai'
import type { Stream } from 'openai/streaming'
import { optionalPackage, type OptionalPackage } from '../../shared/client/optional-package.ts'

/** What is needed of the official SDK. */
export interface OpenAISdk {
  readonly OpenAI: typeof OpenAI
  /** Reads the events of a response. */
  readonly Stream: typeof Stream
}

/** The official SDK. */
export const sdk: OptionalPackage<OpenAISdk> = optionalPackage('openai', async () => {
  const [{ OpenAI }, { Stream }] = await Promise.all([import('openai'), import('openai/streaming')])
  return { OpenAI, Stream }
})
