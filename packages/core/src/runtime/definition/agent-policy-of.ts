import type { Model } from '../../models/model.ts'
import type { Tool } from '../../tools/tool.ts'
import type { AgentPolicy, PinnedModel, ToolPolicy } from '../../events/agent-definition.ts'
import { defaultLimits } from '../../events/limits.ts'
import { omitUndefined } from '../../values/json.ts'
import type { AgentOptions } from '../agent/agent.ts'
import { recordedOutput } from '../output/output-stream.ts'
import { recordedPolicy } from '../agent/part-check.ts'

/** What the ledger pins of how an agent's runs are driven. */
export function policyOf(
  {
    limits,
    retry,
    timeouts,
    compaction,
    approval,
    maxResultChars,
    recording,
    outputStream,
    tools,
    model,
    fallbacks = [],
  }: AgentOptions<unknown> & { readonly tools: readonly Tool[] },
  summarizer: Model | undefined,
): AgentPolicy {
  const models = [model, ...fallbacks, ...(summarizer ? [summarizer] : [])]
  return {
    limits: { ...defaultLimits, ...omitUndefined({ ...limits }) },
    ...omitUndefined({
      retry: filled(retry),
      timeouts: filled(timeouts),
      compaction: compaction && {
        maxContextTokens: compaction.maxContextTokens,
        keepMessages: compaction.keepMessages,
      },
      tools: tools.length > 0 ? tools.map(toolPolicyOf) : undefined,
      maxResultChars,
      approval: approval ? (true as const) : undefined,
      models: pinnedModels(models),
      recording: recordedPolicy(recording),
      outputStream: recordedOutput(outputStream),
    }),
  }
}

function toolPolicyOf({ name, effect, recovery, ...rest }: Tool): ToolPolicy {
  const { timeoutMs, quietMs, retry, maxResultChars, serial, maxConcurrency, repeats, approval, origin } =
    rest
  const limits = omitUndefined({ timeoutMs, quietMs, retry, maxResultChars, serial, maxConcurrency, repeats })
  return { name, effect, recovery, ...limits, ...omitUndefined({ approval, origin }) }
}

function pinnedModels(models: readonly Model[]): readonly PinnedModel[] | undefined {
  const pinned = models.flatMap((model): readonly PinnedModel[] => {
    const { provider, api, modelId } = model
    const settings = adapterSettings(model)
    return Object.keys(settings).length > 0 ? [{ model: { provider, api, modelId }, ...settings }] : []
  })
  return pinned.length > 0 ? pinned : undefined
}

/** What the ledger pins of a model's adapter. */
export function adapterSettings({ pinnedOptions = {}, additions = [] }: Model): Omit<PinnedModel, 'model'> {
  return {
    ...(Object.keys(pinnedOptions).length > 0 && { options: pinnedOptions }),
    ...(additions.length > 0 && { additions }),
  }
}

function filled<T extends object>(options: T | undefined): Given<T> | undefined {
  const given = omitUndefined({ ...options }) as Given<T>
  return Object.keys(given).length > 0 ? given : undefined
}

type Given<T> = { readonly [K in keyof T]: Exclude<T[K], undefined> }
