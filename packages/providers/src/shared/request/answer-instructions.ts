import type { JsonObject } from '@tallystick/core/vocabulary'

/** Instructions that also say what the answer has to be, for a wire that cannot hold a model to this schema. */
export function withAnswerSchema(instructions: string, schema: JsonObject): string {
  const ofSchema = `Your answer has to be JSON that fits this JSON Schema, and nothing else: no words before or behind it.\n${JSON.stringify(schema)}`
  return instructions.trim() === '' ? ofSchema : `${instructions}\n\n${ofSchema}`
}

/** Returns the warning for a schema that went into the instructions, with the reason. */
export function schemaInWords(why: string): string {
  return `The schema of the answer was put into the instructions, and the runtime alone checks the answer: ${why}.`
}
