/** The vendor's error types with their HTTP statuses. */
const statusOf = {
  invalid_request_error: 400,
  authentication_error: 401,
  not_found_error: 404,
  request_too_large: 413,
  api_error: 500,
} as const

export type RefusalType = keyof typeof statusOf

/** A refused request. */
export class Refusal extends Error {
  readonly type: RefusalType
  constructor(type: RefusalType, message: string) {
    super(message)
    this.type = type
  }

  get status(): number {
    return statusOf[this.type]
  }

  /** The body of the response, in the vendor's shape. */
  toBody(requestId: string): object {
    return { type: 'error', error: { type: this.type, message: this.message }, request_id: requestId }
  }
}
