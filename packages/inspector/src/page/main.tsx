import { render } from 'preact'
import './styles.css'
import { App } from './views/app.tsx'

render(<App />, document.getElementById('app')!)
