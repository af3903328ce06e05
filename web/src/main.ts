import './app.css';

import { mount } from 'svelte';

import App from './App.svelte';
import { desk } from './stores/desk.svelte';

desk.start();
mount(App, { target: document.getElementById('app')! });
