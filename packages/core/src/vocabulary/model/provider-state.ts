import { objectOf, optional, type Schema, text } from '../values/schema.ts'

/** Where a provider keeps the conversation: after a response, or under an id. One of the two. */
export interface ProviderState {
  /** The id of the last response that the provider keeps. */
  readonly previousResponseId?: string
  /** The id of a conversation that the provider keeps. */
  readonly conversationId?: string
}

/** Checks where a provider keeps what was said. */
export const providerState: Schema<ProviderState> = objectOf<ProviderState>({
  previousResponseId: optional(text),
  conversationId: optional(text),
})
