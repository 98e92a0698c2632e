import type { JsonObject } from '@tallystick/core/vocabulary'

/** The schema of a parameter's value. */
export const parameterValue: JsonObject = { type: ['string', 'number', 'boolean', 'null'] }

/** The schema of what a query tool takes. */
export function queryInput(sqlDescription: string, parameters: JsonObject): JsonObject {
  return {
    type: 'object',
    required: ['sql'],
    additionalProperties: false,
    properties: {
      sql: { type: 'string', minLength: 1, maxLength: 20_000, description: sqlDescription },
      parameters,
    },
  }
}
