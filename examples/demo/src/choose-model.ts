import { ConfigurationError } from '@tallystick/core'

/** The model id of the loopback server. It is not a vendor's, so that no ledger names a model that was not called. */
export const loopbackModelId = 'loopback-stock-player'

/** The default model if a key is set. */
export const claudeModelId = 'claude-opus-4-8'

/**
 * Returns the id of the model to use: the one that is named, else Claude if the environment has a key for it, else the
 * loopback server's. Throws a `ConfigurationError` if the key of a named model is missing.
 */
export function chooseModel(environment: NodeJS.ProcessEnv, named?: string): string {
  const keyed = (environment['ANTHROPIC_API_KEY'] ?? '') !== ''
  const modelId = named ?? (keyed ? (environment['TALLYSTICK_DEMO_MODEL'] ?? claudeModelId) : loopbackModelId)
  if (modelId === loopbackModelId || keyed) return modelId
  throw new ConfigurationError(
    `The model ${modelId} runs at Anthropic, which needs a key. Set ANTHROPIC_API_KEY, or leave out --model to have a server on loopback play the model.`,
  )
}

/** Says in one line who plays the model. */
export function playedBy(modelId: string): string {
  return modelId === loopbackModelId
    ? 'A server on loopback plays the model (set ANTHROPIC_API_KEY to ask Claude).'
    : `Claude is the model: ${modelId}, at Anthropic's service.`
}
