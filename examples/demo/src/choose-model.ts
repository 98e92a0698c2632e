import { ConfigurationError } from '@tallystick/core'

/** The model id that the loopback server answers to. No vendor's, so that no ledger claims one that was not asked. */
export const loopbackModelId = 'loopback-stock-player'

/** The model of Anthropic's that is asked when a key is set and nothing else is said. */
export const claudeModelId = 'claude-opus-4-8'

/**
 * Says which model the agent asks: the one that is named, else Claude where the environment holds a key for it, else
 * the loopback server. Throws a `ConfigurationError` for a model whose key is missing.
 */
export function chooseModel(environment: NodeJS.ProcessEnv, named?: string): string {
  const keyed = (environment['ANTHROPIC_API_KEY'] ?? '') !== ''
  const modelId = named ?? (keyed ? (environment['TALLYSTICK_DEMO_MODEL'] ?? claudeModelId) : loopbackModelId)
  if (modelId === loopbackModelId || keyed) return modelId
  throw new ConfigurationError(
    `The model ${modelId} is asked over Anthropic's service, which needs a key. Set ANTHROPIC_API_KEY, or leave the model out: a server on loopback plays it then.`,
  )
}

/** Who plays the model, in one line. */
export function playedBy(modelId: string): string {
  return modelId === loopbackModelId
    ? 'A server on loopback plays the model (set ANTHROPIC_API_KEY to ask Claude).'
    : `Claude is the model: ${modelId}, at Anthropic's service.`
}
