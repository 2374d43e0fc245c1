"""The doctor: connects to each broker through each listener, writes records and reads them."""
