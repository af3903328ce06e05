import './app.css';

import { mount } from 'svelte';

import App from './App.svelte';
import { app } from './stores/app.svelte';

app.start();
// In a turn of its own: what was just asked for is on its way meanwhile.
setTimeout(() => mount(App, { target: document.getElementById('app')! }));
