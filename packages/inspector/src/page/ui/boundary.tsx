import { Component, type ComponentChildren } from 'preact'

interface Props {
  /** The view, as the user knows it. */
  readonly name: string
  readonly children: ComponentChildren
}

/** Keeps a view that fails from taking the others with it: what a ledger holds may be like nothing that was expected. */
export class Boundary extends Component<Props, { readonly error: Error | undefined }> {
  override state: { readonly error: Error | undefined } = { error: undefined }

  static override getDerivedStateFromError(error: Error): { readonly error: Error } {
    return { error }
  }

  override render({ name, children }: Props): ComponentChildren {
    const { error } = this.state
    if (error === undefined) return children
    return (
      <div class="notice bad" role="alert">
        <p>
          {name} cannot be shown: {error.message}
        </p>
        <button type="button" onClick={() => this.setState({ error: undefined })}>
          Try again
        </button>
      </div>
    )
  }
}
