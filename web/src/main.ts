import './app.css';

import { mount } from 'svelte';

import App from './App.svelte';
import { app } from './stores/app.svelte';

app.start();
// In a separate task, so that the requests are sent before the page is rendered.
setTimeout(() => mount(App, { target: document.getElementById('app')! }));
