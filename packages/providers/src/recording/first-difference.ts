import type { Json, JsonObject } from '@tallystick/core/vocabulary'

/**
 * Where two values first differ, as a path such as `messages.2.content`; `undefined` where they do not. Says where and
 * not what: values are prompts.
 */
export function firstDifference(
  one: Json | undefined,
  other: Json | undefined,
  path = '',
): string | undefined {
  if (one === other) return undefined
  if (!isComposed(one) || !isComposed(other) || Array.isArray(one) !== Array.isArray(other)) {
    return path || 'all of it'
  }
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const inner = firstDifference(one[key], other[key], path === '' ? key : `${path}.${key}`)
    if (inner !== undefined) return inner
  }
  return undefined
}

/** An object, or a list, which is one whose keys are places. */
function isComposed(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null
}
