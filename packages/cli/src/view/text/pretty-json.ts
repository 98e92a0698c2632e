import { canonicalJson, type Json } from '@tallystick/core/vocabulary'

/** Returns JSON over lines, its keys in canonical order, whatever order they came in. */
export function prettyJson(value: Json): string {
  return JSON.stringify(JSON.parse(canonicalJson(value)), undefined, 2)
}
